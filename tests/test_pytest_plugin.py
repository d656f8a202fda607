"""The pytest plugin: one test a clause."""

import pytest

from logitsproc.spec import clauses

MINIATURES = "logitsproc.conformance.miniatures"


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


@pytest.mark.usefixtures("short_tier")
def test_a_right_processor_passes_clause_by_clause(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--logits-processor", f"{MINIATURES}.controls:MinP", "--lp-as", "min_p", "-v")
    result.stdout.fnmatch_lines(["*MinP::UPD-SWAP PASSED*", "*MinP::MINP-THRESHOLD PASSED*"])
    assert result.ret == 0
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] > 20
    assert "failed" not in outcomes


@pytest.mark.usefixtures("short_tier")
def test_a_wrong_processor_fails_one_clause_with_the_explanation(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--logits-processor", f"{MINIATURES}.consumers:ForgetsReplacement", "--lp-as", "min_p")
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*breaks PROC-STATE-DEPARTED*", "*To fix:*"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.usefixtures("short_tier")
def test_without_a_witness_the_clauses_fail_as_unproven(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--logits-processor", f"{MINIATURES}.controls:NoRepeat")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*is unproven: no step of the run was a witness of it*"])


@pytest.mark.usefixtures("short_tier")
def test_params_make_it_proven(pytester: pytest.Pytester) -> None:
    path = pytester.makefile(".json", params='[{"extra_args": {"no_repeat": true}}]')
    target = f"{MINIATURES}.controls:NoRepeat"
    assert run(pytester, "--logits-processor", target, "--lp-params", str(path)).ret == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--logits-processor", "nonsense"], "*'nonsense' is not module:Class*"),
        (["--logits-processor", f"{MINIATURES}.controls:MinP", "--lp-tier", "slow"], "*--lp-tier slow: there are*"),
        (["--logits-processor", f"{MINIATURES}.controls:MinP", "--lp-as", "top_q"], "*no reference for 'top_q'*"),
    ],
)
def test_a_bad_option_is_one_line(pytester: pytest.Pytester, options: list[str], says: str) -> None:
    result = run(pytester, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: logitsproc: {says.removeprefix('*')}"])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_the_plugin_keeps_out_of_runs_that_do_not_ask_for_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    assert run(pytester).parseoutcomes() == {"passed": 1}


@pytest.mark.usefixtures("short_tier")
def test_a_producer_is_judged_clause_by_clause(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--update-producer", "logitsproc.conformance.producers.reference:Elided", "-v")
    result.stdout.fnmatch_lines(["*Elided::PROD-REPLAY PASSED*"])
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == len([id for id in clauses() if id.startswith("PROD-")])


@pytest.mark.usefixtures("short_tier")
def test_a_wrong_producer_fails_one_clause(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--update-producer", f"{MINIATURES}.producers:SaysTheOldSize")
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*breaks PROD-SIZE*"])


def test_a_bad_producer_is_one_line(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--update-producer", f"{MINIATURES}.controls:MinP")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: logitsproc: *MinP is not a producer: it has no step()"])
