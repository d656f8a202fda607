"""check_processor, as an author calls it."""

import pytest
import subjects

from logitsproc.conformance import CannotRun, NotConformant, check_processor
from logitsproc.conformance.miniatures.consumers import ForgetsReplacement
from logitsproc.conformance.miniatures.controls import MinP

pytestmark = pytest.mark.usefixtures("short_tier")

PARAMS = [{"extra_args": {"target_token": 3}}, {"extra_args": {"target_token": 5}}]


def test_a_right_processor_gives_a_report() -> None:
    report = check_processor(MinP, implements="min_p")
    assert report.verdict == "conformant"
    assert report.evidence.histories > 0


def test_a_wrong_processor_raises_an_assertion_with_the_explanation() -> None:
    with pytest.raises(AssertionError) as caught:
        check_processor(ForgetsReplacement, implements="min_p", seed=3)
    assert isinstance(caught.value, NotConformant)
    assert "breaks PROC-STATE-DEPARTED" in str(caught.value)
    assert "To fix:" in str(caught.value)
    assert caught.value.report.failure is not None


def test_the_authors_own_oracle() -> None:
    report = check_processor(subjects.TargetToken, oracle=subjects.target_token, params=PARAMS)
    assert report.oracle == "target_token"
    with pytest.raises(NotConformant):
        check_processor(subjects.TargetToken, oracle=subjects.wrong_oracle, params=PARAMS)


def test_a_factory_is_a_subject_too() -> None:
    def make(vllm_config: object, device: object, is_pin_memory: bool) -> MinP:
        return MinP(vllm_config, device, is_pin_memory)

    assert check_processor(make, implements="min_p").verdict == "conformant"


def test_unproven_is_not_a_pass() -> None:
    with pytest.raises(NotConformant, match="unproven"):
        check_processor(subjects.TargetToken)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"subject": "nonsense"}, "'nonsense' is not module:Class"),
        ({"subject": MinP, "implements": "min_q"}, "no reference for 'min_q'"),
        ({"subject": MinP, "tier": "slow"}, "no tier 'slow'"),
        ({"subject": MinP, "params": [1]}, "params is not a list of objects"),
        ({"subject": 3}, "3 is not a class"),
    ],
)
def test_what_cannot_be_run_says_so_in_one_line(arguments: dict, says: str) -> None:
    with pytest.raises(CannotRun, match=says) as caught:
        check_processor(**arguments)
    assert "\n" not in str(caught.value)


def test_the_check_runs_off_the_main_thread() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(check_processor, MinP, implements="min_p").result().verdict == "conformant"
