"""A right pipeline in a few lines, and wrong ones: in what they run, and in how they load custom processors."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

import torch

from logitsproc.conformance.loading import GROUP
from logitsproc.conformance.miniatures.controls import (
    AllowedTokenIds,
    BadWords,
    ByRow,
    FrequencyPenalty,
    LogitBias,
    MinP,
    MinTokens,
    PresencePenalty,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from logitsproc.reference.loading import loaded, resolved

FIRST = (AllowedTokenIds, BadWords, MinTokens, LogitBias)
PENALTIES = (RepetitionPenalty, FrequencyPenalty, PresencePenalty)


class Everybody(ByRow):
    """All requests of the batch."""

    def wants(self, params: Any) -> bool:
        return True

    @property
    def all_greedy(self) -> bool:
        """Whether nobody asks for random sampling."""
        return all(params.temperature < 1e-5 for params, _, _ in self.rows.values())


class Pipeline:
    """Every stage in order, one after the other."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        def built(classes: Iterable[type]) -> list[Any]:
            return [cls(vllm_config, device, is_pin_memory) for cls in classes]

        custom = built(self.load(vllm_config.model_config.logits_processors or ()))
        answers = [(processor, processor.is_argmax_invariant()) for processor in custom]
        self.custom = [processor for processor, invariant in answers if not invariant]
        self.invariant = [processor for processor, invariant in answers if invariant]
        self.first, self.penalties = built(FIRST), built(PENALTIES)
        self.scaled, self.cut = built((Temperature, MinP)), built((TopK, TopP))
        self.everybody = Everybody(vllm_config, device, is_pin_memory)

    def load(self, given: Any) -> list[type]:
        """The custom classes: plug-ins, then those that were given."""
        return loaded(self.plugins(), given, importlib.import_module)

    def plugins(self) -> list[str]:
        """What the entry points name."""
        return [point.value for point in entry_points(group=GROUP)]

    def is_argmax_invariant(self) -> bool:
        """Some stages are not."""
        return False

    def always(self) -> list[Any]:
        """The stages that also greedy requests go through."""
        return [*self.first, *self.custom, *self.penalties]

    def drawn(self) -> list[Any]:
        """The stages for random sampling."""
        return [*self.scaled, *self.invariant, *self.cut]

    def update_state(self, update: Any) -> None:
        """Every stage follows the batch."""
        for stage in (*self.always(), *self.drawn(), self.everybody):
            stage.update_state(update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """One stage after the other on what the one before returned."""
        logits = self.run(self.always(), logits.float())
        return logits if self.skips() else self.run(self.drawn(), logits)

    def skips(self) -> bool:
        """Whether the argmax-invariant stages are left out."""
        return self.everybody.all_greedy

    def run(self, stages: list[Any], logits: torch.Tensor) -> torch.Tensor:
        """The stages in order."""
        for stage in stages:
            logits = stage.apply(logits)
        return logits


class PenaltiesFirst(Pipeline):
    """PIPE-ORDER: penalises before bias and custom processors."""

    def always(self) -> list[Any]:
        return [*self.penalties, *self.first, *self.custom]


class CutsBeforeItScales(Pipeline):
    """PIPE-ORDER: top-k and top-p before temperature and min-p."""

    def drawn(self) -> list[Any]:
        return [*self.cut, *self.scaled, *self.invariant]


class AsksTheFirstOnly(Pipeline):
    """PIPE-EACH: runs a stage if the first row's request uses it."""

    def run(self, stages: list[Any], logits: torch.Tensor) -> torch.Tensor:
        return super().run([stage for stage in stages if 0 in getattr(stage, "rows", (0,))], logits)


class GreedyMeansPlain(Pipeline):
    """PIPE-EACH: takes a way round the penalties when all requests are greedy."""

    def always(self) -> list[Any]:
        return [*self.first, *self.custom] if self.everybody.all_greedy else super().always()

    def update_state(self, update: Any) -> None:
        self.everybody.update_state(update)
        for stage in (*self.first, *self.custom, *self.penalties, *self.drawn()):
            stage.update_state(update)


class DividesByAlmostNothing(Pipeline):
    """PIPE-GREEDY: in a mixed batch divides the rows of greedy requests by a small number."""

    def run(self, stages: list[Any], logits: torch.Tensor) -> torch.Tensor:
        if stages[0] is self.scaled[0]:
            greedy = [row for row, (params, _, _) in self.everybody.rows.items() if params.temperature < 1e-5]
            logits[greedy] /= 0.01
        return super().run(stages, logits)


class NeverSkips(Pipeline):
    """PIPE-SKIP: runs argmax-invariant processors for a greedy batch too."""

    def skips(self) -> bool:
        return False


class SkipsForAnyone(Pipeline):
    """PIPE-SKIP: skips the argmax-invariant stages as soon as one request is greedy."""

    def skips(self) -> bool:
        return any(params.temperature < 1e-5 for params, _, _ in self.everybody.rows.values())


class TrustsInPlace(Pipeline):
    """PIPE-RETURNED: goes on with the tensor it had, whatever a processor returns."""

    def run(self, stages: list[Any], logits: torch.Tensor) -> torch.Tensor:
        for stage in stages:
            stage.apply(logits)
        return logits


class StaysInBfloat16(Pipeline):
    """PIPE-FLOAT: calculates in the dtype that it is given, and converts at the end."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        logits = self.run(self.always(), logits.clone())
        return (logits if self.skips() else self.run(self.drawn(), logits)).float()


class FillsTheEmpty(Pipeline):
    """EMPTY-ROW: lets every token of a row in when none is left."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        before = logits.float().clone()
        after = super().apply(logits)
        empty = torch.isneginf(after).all(dim=1) & ~torch.isneginf(before).all(dim=1)
        after[empty] = 0.0
        return after


class TakesNamesOnly(Pipeline):
    """LOAD-CLASS: passes over what is not a name."""

    def load(self, given: Any) -> list[type]:
        return super().load([target for target in given if isinstance(target, str)])


class WalksOneStep(Pipeline):
    """LOAD-NAME: takes the last part of a dotted name as an attribute of the module."""

    def load(self, given: Any) -> list[type]:
        return super().load([self.last(target) if isinstance(target, str) else target for target in given])

    def last(self, target: str) -> str:
        """`module:Inner` of `module:Outer.Inner`."""
        module, _, qualified = target.partition(":")
        return f"{module}:{qualified.rpartition('.')[2]}"


class NoPlugins(Pipeline):
    """LOAD-ENTRY: never looks at entry points."""

    def plugins(self) -> list[str]:
        return []


class GivenFirst(Pipeline):
    """LOAD-ORDER: loads the given classes before the plug-ins."""

    def load(self, given: Any) -> list[type]:
        return loaded([], [*given, *self.plugins()], importlib.import_module)


class PassesOver(Pipeline):
    """LOAD-REFUSE: leaves out silently what cannot be loaded."""

    def load(self, given: Any) -> list[type]:
        found = []
        for target in (*self.plugins(), *given):
            try:
                found.append(resolved(target, importlib.import_module))
            except ValueError:
                continue
        return found


class AsksEveryStep(Pipeline):
    """LOAD-INVARIANT: asks again at every step."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for processor in (*self.custom, *self.invariant):
            processor.is_argmax_invariant()
        return super().apply(logits)


class LeavesMinPOut(Pipeline):
    """MINP-THRESHOLD: takes requests with min_p, and has no such stage."""

    def drawn(self) -> list[Any]:
        return [stage for stage in super().drawn() if not isinstance(stage, MinP)]


class LetsTokenZeroIn(Pipeline):
    """EMPTY-ROW: takes the argmax of a row with nothing left, which is token 0, and lets it in."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        was_empty = torch.isneginf(logits).all(dim=1)
        logits = super().apply(logits)
        logits[torch.isneginf(logits).all(dim=1) & ~was_empty, 0] = 0.0
        return logits


class Idle:
    """What a class lacks that is no logits processor."""

    def is_argmax_invariant(self) -> bool:
        """No."""
        return False

    def update_state(self, update: Any) -> None:
        """Follows nothing."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Changes nothing."""
        return logits


class TakesAnyPlugin(Pipeline):
    """LOAD-REFUSE: makes do with a class that is no logits processor, where an entry point names it."""

    def load(self, given: Any) -> list[type]:
        classes = [point.load() for point in entry_points(group=GROUP)]
        plugins = [type(cls.__name__, (cls, Idle), {}) for cls in classes]
        return [*plugins, *loaded([], given, importlib.import_module)]
