"""Subjects that cannot be run, or break the contract in the crudest ways; the command line is pointed at them."""

import itertools
import time

import torch

from logitsproc.conformance.miniatures.consumers import ShiftsOnRemove, SwapsByAssignment
from logitsproc.conformance.miniatures.controls import MinP


class NoMethods:
    """No logits processor at all."""


class RaisesInInit(MinP):
    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        raise ValueError("no such model")


class ExitsInInit(MinP):
    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        raise SystemExit(0)


class WritesBeside(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if not logits.is_contiguous() and len(logits):
            logits.as_strided((len(logits), 1), (logits.stride(0), 1), logits.shape[1]).zero_()
        return super().apply(logits)


class RaisesInColour(MinP):
    def update_state(self, update: object) -> None:
        raise ValueError("\x1b[31mbad\x00")


class SlowAndWrong(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        time.sleep(0.02)
        return super().apply(logits)

    def swap(self, row: int, other: int) -> None:
        pass


class Penalises(MinP):
    """Right: lowers the logits of the output tokens of requests with a penalty, by their ids."""

    def is_argmax_invariant(self) -> bool:
        return False

    def wants(self, params: object) -> bool:
        return "penalty" in (params.extra_args or {})

    def transform(self, logits: torch.Tensor, params: object, prompt: object, output: list[int]) -> None:
        seen = torch.zeros_like(logits).scatter(0, torch.tensor(sorted(set(output)), dtype=torch.long), 1.0)
        logits -= seen * params.extra_args["penalty"]


class HangsInInit(MinP):
    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        while True:
            time.sleep(0.01)


class WrongShape(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits)[:, :-1]


class WrongDtype(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits).double()


class ReturnsNone(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        super().apply(logits)
        return None


class ReturnsNaN(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits) * torch.nan


class LoopsInApply(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        while self.rows:
            pass
        return logits


class SwallowsTheInterrupt(MinP):
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        while self.rows:
            try:
                time.sleep(0.01)
            except BaseException:
                continue
        return logits


class RaisesInUpdate(MinP):
    def update_state(self, update: object) -> None:
        raise RuntimeError("out of\ncheese")


class ExitsInUpdate(MinP):
    def update_state(self, update: object) -> None:
        raise SystemExit(0)


class UnsureOfInvariance(MinP):
    def is_argmax_invariant(self) -> bool:
        return "yes"


class RefusesEverything(MinP):
    @classmethod
    def validate_params(cls, params: object) -> None:
        raise ValueError("no")


class RaisesInValidation(MinP):
    @classmethod
    def validate_params(cls, params: object) -> None:
        raise KeyError("extra_args")


class WrongOnOneDevice(MinP):
    """Is on cpu:0 and nowhere else."""

    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        if str(device) != "cpu:0":
            raise ValueError(f"not on {device}")
        super().__init__(vllm_config, device, is_pin_memory)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits) + 1


class Nested:
    class Inner(MinP):
        """A class inside a class."""


class TargetToken(MinP):
    """Keeps only the token that extra_args names, as the example of vLLM's documentation does."""

    def is_argmax_invariant(self) -> bool:
        return False

    def wants(self, params: object) -> bool:
        return (params.extra_args or {}).get("target_token") is not None

    def transform(self, logits: torch.Tensor, params: object, prompt: object, output: object) -> None:
        token = params.extra_args["target_token"]
        kept = logits[token].clone()
        logits.fill_(-torch.inf)
        logits[token] = kept


class StrictAndSwapRaises(TargetToken):
    """Wants every request to name a token of a large vocabulary, and every swap is a KeyError."""

    @classmethod
    def validate_params(cls, params: object) -> None:
        if not params.extra_args:
            raise ValueError("target_token is missing")

    def swap(self, row: int, other: int) -> None:
        raise KeyError(row)


class SwapsAndRemovesWrongly(SwapsByAssignment, ShiftsOnRemove):
    """Two faults: swapped with an empty row, the state stays behind as well; rows above a removed one shift."""


class PopsTheParams(TargetToken):
    def add(self, row: int, params: object, prompt: object, output: object) -> None:
        super().add(row, params, prompt, output)
        (params.extra_args or {}).pop("target_token", None)

    def transform(self, logits: torch.Tensor, params: object, prompt: object, output: object) -> None:
        pass


class SortsThePrompt(TargetToken):
    def add(self, row: int, params: object, prompt: list[int] | None, output: object) -> None:
        super().add(row, params, prompt, output)
        if prompt:
            prompt.sort()


class ForgetsHighRows(TargetToken):
    """Serves the first nine rows only."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, state in self.rows.items():
            if row < 9:
                self.transform(logits[row], *state)
        return logits


class CachesByLength(TargetToken):
    """Remembers a sum of the outputs by their number, which is wrong when a list shrinks and grows otherwise."""

    def add(self, row: int, params: object, prompt: object, output: list[int]) -> None:
        super().add(row, (params, {}), prompt, output)

    def wants(self, params: tuple) -> bool:
        return super().wants(params[0])

    def transform(self, logits: torch.Tensor, params: tuple, prompt: object, output: list[int]) -> None:
        total = params[1].setdefault(len(output), sum(output))
        logits[total % len(logits)] = -torch.inf


class NoRepeatedPairs(MinP):
    """Right: bans the token that would repeat a pair of output tokens."""

    def is_argmax_invariant(self) -> bool:
        return False

    def wants(self, params: object) -> bool:
        return "ngram" in (params.extra_args or {})

    def transform(self, logits: torch.Tensor, params: object, prompt: object, output: list[int]) -> None:
        for first, second in itertools.pairwise(output):
            if first == output[-1]:
                logits[second] = -torch.inf


def target_token(params: object, prompt: object, output: object, logits: torch.Tensor) -> torch.Tensor:
    """The oracle of TargetToken."""
    token = (params.extra_args or {}).get("target_token")
    if token is None:
        return logits
    row = torch.full_like(logits, -torch.inf)
    row[token] = logits[token]
    return row


def wrong_oracle(params: object, prompt: object, output: object, logits: torch.Tensor) -> torch.Tensor:
    return logits + 1


def raising_oracle(params: object, prompt: object, output: object, logits: torch.Tensor) -> torch.Tensor:
    raise ZeroDivisionError("oops")


def shapeless_oracle(params: object, prompt: object, output: object, logits: torch.Tensor) -> torch.Tensor:
    return logits[None]


class MisbehavesOnce(MinP):
    """The twentieth processor of a process is wrong, and no other."""

    made = 0

    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        MisbehavesOnce.made += 1
        self.wrong = MisbehavesOnce.made == 20

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits + 1 if self.wrong else super().apply(logits)


SHARED: dict = {}


class SharesState(MinP):
    """State on the class: what one processor did shows in the next."""

    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        self.rows = SHARED


not_a_class = MinP.apply
