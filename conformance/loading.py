"""How a pipeline loads custom processors: it is built with some, and what was loaded, and applied, is looked at."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from logitsproc.conformance.bindings import CPU, CannotRun, Subject, one_line
from logitsproc.conformance.findings import Finding
from logitsproc.conformance.watch import WATCH

MODULE = "logitsproc_recorders"
GROUP = "vllm.logits_processors"
VOCAB = 8
LOG: list[tuple[str, list[float]]] = []
"""Which processor was applied, and to which first row."""


class Recorder:
    """A processor that writes down that it was applied, and how often it was asked."""

    invariant = False

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.asked = 0
        BUILT.append(self)

    def is_argmax_invariant(self) -> bool:
        """The same answer every time; the times are counted."""
        self.asked += 1
        return self.invariant

    def update_state(self, batch_update: Any) -> None:
        """There is nothing to follow."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Writes down the first row."""
        LOG.append((type(self).__name__, logits[0].tolist()))
        return logits


BUILT: list[Recorder] = []


class First(Recorder):
    """One that is not argmax invariant."""


class Second(Recorder):
    """Another."""


class Plugin(Recorder):
    """One that an entry point names."""


class Always(Recorder):
    """One that is argmax invariant."""

    invariant = True


class NoProcessor:
    """Nothing that a logits processor has, but for the way it is built."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        pass


class NoApply(NoProcessor):
    """A logits processor but for `apply`, which is asked for at the first step only."""

    def is_argmax_invariant(self) -> bool:
        """It could say anything."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """There is nothing to follow."""


REFUSED: dict[str, type | str] = {
    "a class that is no logits processor": NoProcessor,
    "a class that has no apply": NoApply,
    "the name of a class that is no logits processor": f"{MODULE}:NoProcessor",
    "a name without a colon": MODULE,
    "a name with two colons": f"{MODULE}:First:Second",
    "a name that leads nowhere": f"{MODULE}:Missing",
    "a nested name that leads nowhere": f"{MODULE}:Outer.Missing",
    "the name of a function": f"{MODULE}:function",
    "a module that is not there": "logitsproc_no_such_module:First",
    "a module that raises when it is imported": f"{MODULE}_raising:First",
}


REFUSED_PLUGINS = {
    "an entry point that leads nowhere": f"{MODULE}:Missing",
    "an entry point of a class that is no logits processor": f"{MODULE}:NoProcessor",
}


@contextmanager
def recorders(subject: Subject, plugins: Sequence[str] = ()) -> Iterator[ModuleType]:
    """A module of recorders for this host, and a distribution on the path whose entry points name these."""
    module: Any = ModuleType(MODULE)
    derived = subject.binding.derived
    for recorder in (First, Second, Plugin, Always):
        setattr(module, recorder.__name__, derived(recorder))
    module.Outer = type("Outer", (), {"Inner": derived(type("Inner", (Recorder,), {}))})
    module.NoProcessor, module.function = NoProcessor, recorders
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / f"{MODULE}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 1\n")
        points = "\n".join(f"plugin{number} = {target}" for number, target in enumerate(plugins))
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        (Path(folder) / f"{MODULE}_raising.py").write_text("raise RuntimeError('no such library')\n")
        sys.modules[MODULE] = module
        sys.path.insert(0, folder)
        try:
            yield module
        finally:
            sys.path.remove(folder)
            del sys.modules[MODULE]


@dataclass(frozen=True)
class Scenario:
    """A subject, what the entry points name, and what the configuration does: recorders by name, or other targets."""

    subject: Subject
    given: tuple[type | str, ...] | None = None
    plugins: tuple[str, ...] = ()

    def run(self, params: dict[str, Any]) -> list[tuple[str, list[float]]]:
        """One request that is not greedy, one step; what was applied to which first row."""
        with recorders(self.subject, self.plugins) as module:
            LOG.clear()
            BUILT.clear()
            binding = self.subject.binding
            update = binding.batch_update(1, [], [(0, binding.make_params(params), [1], [])], [])
            pipeline = self.build(module)
            WATCH.call(pipeline.update_state, update)
            WATCH.call(pipeline.apply, torch.zeros(1, VOCAB, device=self.subject.device))
            return list(LOG)

    def start(self) -> None:
        """Builds the pipeline and no more; raises what it raises."""
        with recorders(self.subject, self.plugins) as module:
            self.build(module)

    def build(self, module: ModuleType) -> Any:
        """The pipeline, with the recorders of this module."""
        return WATCH.call(self.subject.build_with, VOCAB, self.named(module))

    @property
    def names(self) -> str:
        """The configuration's list, as an expression without brackets."""
        return ", ".join(repr(each) if isinstance(each, str) else each.__name__ for each in self.given or ())

    def named(self, module: ModuleType) -> list[type | str] | None:
        """The configuration's list; a recorder stands in it as the class that the host takes."""
        if self.given is None:
            return None
        return [getattr(module, each.__name__, each) if isinstance(each, type) else each for each in self.given]

    def __str__(self) -> str:
        """`logits_processors=[First, 'module:Second'], an entry point of module:Third`."""
        points = "".join(f", an entry point of {plugin}" for plugin in self.plugins)
        return f"logits_processors=[{self.names}]{points}"

    def lines(self, params: dict[str, Any]) -> tuple[str, ...]:
        """The scenario as a script."""
        classes = [each.__name__ for each in self.given or () if isinstance(each, type)]
        given = f"({self.names},)" if self.given else "None"
        where = "" if self.subject.device == CPU else f", {str(self.subject.device)!r}"
        return (
            "from logitsproc.conformance.bindings import load_subject",
            f"from {__name__} import {', '.join(['Scenario', *classes])}",
            "",
            f"subject = load_subject({self.subject.target!r}, {self.subject.binding.name!r}{where})",
            f"for name, row in Scenario(subject, {given}, {self.plugins!r}).run({params!r}):",
            "    print(name, row)",
        )


def check_loading(subject: Subject) -> Iterator[Finding]:
    """LOAD-CLASS, LOAD-NAME, LOAD-ENTRY, LOAD-ORDER, LOAD-INVARIANT, LOAD-REFUSE: every way in, and every refusal."""
    yield loads("LOAD-CLASS", Scenario(subject, (First,)), ["First"])
    yield loads("LOAD-NAME", Scenario(subject, (f"{MODULE}:First",)), ["First"])
    yield loads("LOAD-NAME", Scenario(subject, (f"{MODULE}:Outer.Inner",)), ["Inner"])
    plugins = (f"{MODULE}:Plugin",)
    yield loads("LOAD-ENTRY", Scenario(subject, None, plugins), ["Plugin"])
    all_ways = Scenario(subject, (Second, f"{MODULE}:Always", First), plugins)
    names = ["Plugin", "Second", "First", "Always"]
    yield loads("LOAD-ORDER", all_ways, names)
    yield built_ins_come_first(Scenario(subject, None, plugins))
    yield asks_once(all_ways, names)
    for why, target in REFUSED.items():
        yield refuses(why, Scenario(subject, (target,)))
    for why, plugin in REFUSED_PLUGINS.items():
        yield refuses(why, Scenario(subject, None, (plugin,)))


def loads(clause: str, scenario: Scenario, names: list[str]) -> Finding:
    """LOAD-CLASS, LOAD-NAME, LOAD-ENTRY, LOAD-ORDER: these recorders are applied, each once and in this order."""
    try:
        applied = [name for name, _ in scenario.run({})]
    except (Exception, SystemExit) as error:
        return Finding(clause, f"with {scenario} it raised {one_line(error)}", scenario.lines({}))
    if applied == names:
        return Finding(clause)
    listed = ", ".join(applied) or "nothing"
    trouble = f"with {scenario} what was applied is, in this order, {listed}, and not {', '.join(names)}"
    return Finding(clause, trouble, scenario.lines({}))


def built_ins_come_first(scenario: Scenario) -> Finding:
    """LOAD-ORDER: a built-in processor has worked when the first custom one is applied."""
    params = {"logit_bias": {0: 5.0}}
    trouble = None
    try:
        applied = scenario.run(params)
        if not applied or applied[0][1][0] != 5.0:
            trouble = "logit bias had not been added when the first custom processor was applied"
    except (Exception, SystemExit) as error:
        trouble = f"with {scenario} it raised {one_line(error)}"
    return Finding("LOAD-ORDER", trouble, scenario.lines(params))


def asks_once(scenario: Scenario, names: list[str]) -> Finding:
    """LOAD-INVARIANT: is_argmax_invariant was called once on the instance of each, when the batch had run too."""
    try:
        scenario.run({})
    except (Exception, SystemExit) as error:
        return Finding("LOAD-INVARIANT", f"with {scenario} it raised {one_line(error)}", scenario.lines({}))
    asked = [type(recorder).__name__ for recorder in BUILT for _ in range(recorder.asked)]
    if sorted(asked) == sorted(names):
        return Finding("LOAD-INVARIANT")
    counts = ", ".join(f"{name} {asked.count(name)} times" for name in names)
    return Finding("LOAD-INVARIANT", f"is_argmax_invariant() was asked of {counts}", scenario.lines({}))


def refuses(why: str, scenario: Scenario) -> Finding:
    """LOAD-REFUSE: to build the pipeline raises an error."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        scenario.start()
    except (Exception, SystemExit):
        return Finding("LOAD-REFUSE")
    finally:
        logging.disable(before)
    return Finding("LOAD-REFUSE", f"{why} was let in: {scenario}", scenario.lines({}))


def require_pipeline(subject: Subject) -> None:
    """Raises CannotRun for what takes no configuration with custom processors."""
    try:
        Scenario(subject).run({})
    except (Exception, SystemExit) as error:
        raise CannotRun(f"{subject.target} does not run as a pipeline: {one_line(error)}") from error
