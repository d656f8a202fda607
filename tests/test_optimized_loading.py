"""Custom processors: real entry points, names and classes, what is refused, and request-level callables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from logitsproc.conformance.interface import BatchUpdate, SamplingParams, host_config
from logitsproc.optimized import AdapterLogitsProcessor, MinPLogitsProcessor, load_processors

CPU = torch.device("cpu")
PLUGIN = """
    class Processor:
        def __init__(self, vllm_config, device, is_pin_memory):
            self.built_with = vllm_config, device, is_pin_memory

        def update_state(self, batch_update): ...
        def apply(self, logits): ...
        def is_argmax_invariant(self): ...


    class First(Processor): ...
    class Second(Processor): ...


    class Outer:
        class Inner:
            class Third(Processor): ...


    class NoApply:
        def update_state(self, batch_update): ...
        def is_argmax_invariant(self): ...


    class ApplyIsData(Processor):
        apply = 3


    class DoesNotBuild(Processor):
        def __init__(self, vllm_config, device, is_pin_memory):
            raise AssertionError("built before the others were found")


    function = Processor.apply
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, with the module `plugin_under_test` in it."""
    (tmp_path / "plugin_under_test.py").write_text(dedent(PLUGIN))
    (tmp_path / "plugin_that_breaks.py").write_text("raise RuntimeError('two\\nlines')\n")
    (tmp_path / "plugin_that_exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("plugin_")]:
        del sys.modules[name]


def install(site: Path, package: str, *lines: str, group: str = "vllm.logits_processors") -> None:
    """A package with these entry points in the group, and with one in another group."""
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, "[another.group]", "x = nosuch:x", ""]))


def configured(*given: Any) -> SimpleNamespace:
    config = host_config(8, max_num_seqs=4)
    config.model_config.logits_processors = list(given) or None
    return config


def loaded(*given: Any) -> list[str]:
    """The names of the classes that are built."""
    return [type(each).__name__ for each in load_processors(configured(*given), CPU, False)]


def test_without_custom_processors_there_are_none() -> None:
    assert loaded() == []


def test_each_is_built_with_the_three_arguments(site: Path) -> None:
    config = configured("plugin_under_test:First")
    assert [each.built_with for each in load_processors(config, CPU, True)] == [(config, CPU, True)]


def test_classes_and_names_come_in_the_order_given(site: Path) -> None:
    given = ["plugin_under_test:Second", MinPLogitsProcessor, "plugin_under_test:Outer.Inner.Third"]
    assert loaded(*given, MinPLogitsProcessor) == ["Second", "MinPLogitsProcessor", "Third", "MinPLogitsProcessor"]


def test_a_tuple_of_processors() -> None:
    config = host_config(8, max_num_seqs=4)
    config.model_config.logits_processors = (MinPLogitsProcessor,)
    assert [type(each) for each in load_processors(config, CPU, False)] == [MinPLogitsProcessor]


def test_entry_points_come_first_and_in_the_order_of_the_metadata(site: Path) -> None:
    install(site, "one", "z = plugin_under_test:Second", "a = plugin_under_test:Outer.Inner.Third")
    install(site, "two", "a = plugin_under_test:First")
    found = [point.load().__name__ for point in entry_points(group="vllm.logits_processors")]
    assert sorted(found) == ["First", "Second", "Third"]
    assert found.index("Second") < found.index("Third")
    assert loaded(MinPLogitsProcessor, "plugin_under_test:First") == [*found, "MinPLogitsProcessor", "First"]


def test_other_groups_are_not_read(site: Path) -> None:
    install(site, "one", "a = plugin_under_test:First", group="vllm.logits_processors.more")
    assert loaded() == []


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (3, "3 is not a class"),
        (len, "<built-in function len> is not a class"),
        (
            int,
            "<class 'int'> is not a logits processor: it has no is_argmax_invariant and no update_state and no apply",
        ),
        ("plugin_under_test", "'plugin_under_test' is not of the form 'module:Class'"),
        ("plugin_under_test.First", "'plugin_under_test.First' is not of the form 'module:Class'"),
        (":First", "':First' is not of the form 'module:Class'"),
        ("plugin_under_test:", "'plugin_under_test:' is not of the form 'module:Class'"),
        ("plugin_under_test:First:Second", "'plugin_under_test:First:Second' is not of the form 'module:Class'"),
        ("plugin_under_test:function", "'plugin_under_test:function' is not a class"),
        ("plugin_under_test:NoApply", "'plugin_under_test:NoApply' is not a logits processor: it has no apply"),
        ("plugin_under_test:ApplyIsData", "'plugin_under_test:ApplyIsData' is not a logits processor: it has no apply"),
    ],
)
def test_what_is_no_processor_is_refused(site: Path, target: Any, line: str) -> None:
    with pytest.raises(ValueError) as refusal:
        loaded("plugin_under_test:DoesNotBuild", target)
    assert str(refusal.value) == line


FAILING: list[tuple[str, type[BaseException]]] = [
    ("plugin_nowhere:First", ModuleNotFoundError),
    ("plugin_that_breaks:First", RuntimeError),
    ("plugin_that_exits:First", SystemExit),
    ("plugin_under_test:Fourth", AttributeError),
    ("plugin_under_test:Outer.Third", AttributeError),
]


def assert_refused(shown: str, cause: type[BaseException], *given: str) -> None:
    """The load is refused in one line that names what did not load, with the cause kept."""
    with pytest.raises(ValueError) as refusal:
        loaded(*given)
    assert isinstance(refusal.value.__cause__, cause)
    assert str(refusal.value) == f"{shown} does not load: {refusal.value.__cause__!r}"
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("target", "cause"),
    [*FAILING, (".relative:First", TypeError), ("plugin_under_test:Outer..Inner", AttributeError)],
)
def test_a_name_that_does_not_load_is_refused_with_its_cause(
    site: Path, target: str, cause: type[BaseException]
) -> None:
    assert_refused(repr(target), cause, target)


@pytest.mark.parametrize(("target", "cause"), FAILING)
def test_an_entry_point_that_does_not_load_is_refused_with_its_cause(
    site: Path, target: str, cause: type[BaseException]
) -> None:
    install(site, "one", f"mine = {target}")
    assert_refused(f"entry point 'mine' ({target})", cause)


@pytest.mark.parametrize(("name", "line"), [("function", "is not a class"), ("NoApply", "has no apply")])
def test_an_entry_point_that_is_no_processor_is_refused(site: Path, name: str, line: str) -> None:
    install(site, "one", f"mine = plugin_under_test:{name}")
    with pytest.raises(ValueError, match=rf"^entry point 'mine' \(plugin_under_test:{name}\) .*{line}$"):
        loaded()


class ByExtraArgs(AdapterLogitsProcessor):
    """The callable that the extra arguments hold."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: SamplingParams) -> Callable[..., torch.Tensor] | None:
        return params.extra_args["callable"] if params.extra_args else None


def adapted(*requests: tuple[Any, list[int] | None, list[int]]) -> ByExtraArgs:
    """An adapter whose batch holds a request for each (callable or None, prompt, output)."""
    processor = ByExtraArgs(host_config(8, max_num_seqs=4), CPU, False)
    added = [
        (row, SamplingParams(extra_args={"callable": function}), prompt, output)
        for row, (function, prompt, output) in enumerate(requests)
    ]
    processor.update_state(BatchUpdate(len(added), [], added, []))
    return processor


class Falsy:
    """A callable that is not true."""

    def __bool__(self) -> bool:
        return False

    def __call__(self, output: list[int], row: torch.Tensor) -> torch.Tensor:
        return row + 1


@pytest.mark.parametrize("answers", [[], ["is_argmax_invariant"], ["new_req_logits_processor"]])
def test_an_adapter_needs_both_answers(answers: list[str]) -> None:
    incomplete = type("Incomplete", (AdapterLogitsProcessor,), {name: vars(ByExtraArgs)[name] for name in answers})
    with pytest.raises(TypeError, match="abstract"):
        incomplete(host_config(8, max_num_seqs=4), CPU, False)


def test_an_adapter_loads_as_any_processor() -> None:
    assert loaded(ByExtraArgs) == ["ByExtraArgs"]


def test_an_adapter_accepts_every_request() -> None:
    ByExtraArgs.validate_params(SamplingParams(extra_args={"callable": None}))


def test_callables_get_the_live_lists_by_their_number_of_parameters() -> None:
    seen: list[Any] = []
    prompt, output = [1, 2], [3]

    def with_prompt(prompt: list[int], output: list[int], row: torch.Tensor) -> torch.Tensor:
        seen.append((prompt, output))
        return row

    def without(output: list[int], row: torch.Tensor) -> torch.Tensor:
        seen.append(output)
        return row

    processor = adapted((with_prompt, prompt, output), (without, prompt, output), (with_prompt, None, output))
    output.append(4)
    processor.apply(torch.zeros(3, 8))
    assert seen == [([1, 2], [3, 4]), [3, 4], ([], [3, 4])]
    assert seen[0][0] is prompt and seen[0][1] is output and seen[1] is output and seen[2][1] is output


def test_a_row_is_taken_in_place_or_new_and_none_opts_out() -> None:
    processor = adapted(
        (lambda output, row: row.add_(1), [], []),
        (lambda output, row: row * 2, [], []),
        (None, [], []),
        (Falsy(), [], []),
        (lambda output, row: row.flip(0), [], []),
        (lambda output, row: row.add_(1) - 1, [], []),
    )
    wide = torch.arange(60.0).reshape(6, 10)
    before, logits = wide.clone(), wide[:, 1:9]
    was = logits.clone()
    assert processor.apply(logits) is logits
    expected = [was[0] + 1, was[1] * 2, was[2], was[3] + 1, was[4].flip(0), was[5]]
    assert torch.equal(logits, torch.stack(expected))
    assert torch.equal(wide[:, [0, 9]], before[:, [0, 9]])
