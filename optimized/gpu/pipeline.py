"""Every stage as one processor, and each alone, on a GPU: the CPU backend's row table and records, Triton's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import triton

from logitsproc import optimized
from logitsproc.optimized.gpu import kernels
from logitsproc.optimized.gpu.batch import ALL_STAGES, DeviceBatch, User
from logitsproc.optimized.records import GREEDY, Record, flags_of, record
from logitsproc.optimized.table import BatchUpdate, Users

BEFORE_VARIANT = kernels.ALLOWED.value | kernels.BANNED.value | kernels.BIASED.value
BEFORE_INVARIANT = kernels.PENALISED.value | kernels.DIVIDED.value | kernels.MIN_P.value
AFTER_INVARIANT = kernels.TOP_K.value | kernels.TOP_P.value
NOTHING = Record(0, *(None,) * (len(Record._fields) - 1))
"""What a request asks for that asks for nothing."""


def new_batch(vllm_config: Any, device: torch.device) -> DeviceBatch:
    """Raises ValueError where there is nothing to run the kernels on."""
    if device.type == "cpu" and not triton.knobs.runtime.interpret:
        raise ValueError("the Triton kernels need a GPU, or TRITON_INTERPRET=1 to be interpreted on a CPU")
    return DeviceBatch(device, vllm_config.scheduler_config.max_num_seqs)


def users_of(users: Users[Record]) -> list[User]:
    """The requests that ask for something, in ascending order of rows."""
    states = users.states
    standing = ((row, slot, states.get(slot)) for row, slot in users.table.occupied())
    return [User(row, slot, asked) for row, slot, asked in standing if asked and asked.flags & ~GREEDY]


def run(batch: DeviceBatch, logits: torch.Tensor, stages: int = ALL_STAGES) -> None:
    """PROC-SHAPE, PROC-UNTOUCHED: the stages over logits that the batch is prepared for.

    logits: [rows, vocab] float32, of any strides, changed in place. Of infinities and NaN NumPy would warn when the
    kernels are interpreted.
    """
    if not batch.users or not logits.numel():
        return
    dense = logits if logits.stride(1) == 1 else logits.contiguous()
    with np.errstate(all="ignore"):
        batch.launch(dense, dense, stages)
    if dense is not logits:
        logits.copy_(dense)


class Pipeline(optimized.Pipeline):
    """Every stage of profile `v1` between the model's logits and the sample, custom processors included, in place."""

    def __init__(
        self, vllm_config: Any, device: torch.device, is_pin_memory: bool, custom: Sequence[Any] | None = None
    ) -> None:
        """custom: processors that are built already; None for those that are installed and configured."""
        self.batch = new_batch(vllm_config, device)
        super().__init__(vllm_config, device, is_pin_memory, custom)
        self.users = Users(record)

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED, PIPE-EACH, PIPE-SKIP: the batch as it is now; None says that it is as it was.

        Nothing is sent to the device here: outputs may still change before `apply`.
        """
        if batch_update is not None:
            self.users.follow(batch_update)
            self.batch.follow(users_of(self.users))
        for processor in self.custom:
            processor.update_state(batch_update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """PIPE-ORDER, PIPE-FLOAT, PIPE-SKIP, PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE, EMPTY-ROW:
        the input, changed where a request asks for it, or what custom processors made of it.

        logits: [rows, vocab], of any strides, on the device. float32 is changed in place, another dtype is converted.
        The host waits for nothing. Raises IndexError for a token beyond the vocabulary.
        """
        logits = logits.to(torch.float32)
        self.prepare(logits)
        if not self.custom:
            run(self.batch, logits)
            return logits
        run(self.batch, logits, BEFORE_VARIANT)
        for processor in self.variant:
            logits = processor.apply(logits)
        run(self.batch, logits, BEFORE_INVARIANT)
        for processor in self.invariant if self.is_random() else ():
            logits = processor.apply(logits)
        run(self.batch, logits, AFTER_INVARIANT)
        return logits

    def is_random(self) -> bool:
        """PIPE-SKIP: whether a request is not greedy."""
        return sum(self.users.table.live) > sum(bool(asked.flags & GREEDY) for asked in self.users.states.values())

    def prepare(self, logits: torch.Tensor) -> None:
        """PROC-LIVE-OUTPUTS: brings what is new to the device. What follows of `apply`, without custom processors, are
        launches alone, which a graph can capture for logits of this shape while `batch.generation` stays.

        Raises IndexError for a token beyond the vocabulary.
        """
        if self.batch.users and logits.numel():
            self.batch.prepare(*logits.shape)


class OneStage:
    """One stage of the pipeline, in place, with the params and the answers of the CPU backend's class.

    field: where its state stands in a record.
    """

    field: ClassVar[str]
    state_of: Any

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.batch = new_batch(vllm_config, device)
        self.users = Users(self.record)

    def record(self, params: Any, prompt: list[int] | None, output: list[int]) -> Record | None:
        """A record of what the stage keeps of a request, or None for a request that does not use it."""
        state = self.state_of(params, prompt, output)
        if state is None:
            return None
        asked = NOTHING._replace(**{self.field: state})
        return asked._replace(flags=flags_of(asked[1:]))

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was."""
        if batch_update is not None:
            self.users.follow(batch_update)
            self.batch.follow(users_of(self.users))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE: the input, changed in its users' rows only.

        logits: [rows, vocab] float32, of any strides. Raises IndexError for a token beyond the vocabulary.
        """
        if self.batch.users and logits.numel():
            self.batch.prepare(*logits.shape)
            run(self.batch, logits)
        return logits


class AllowedTokenIdsLogitsProcessor(OneStage, optimized.AllowedTokenIdsLogitsProcessor):
    """Allowed token ids."""

    field = "allowed"


class BadWordsLogitsProcessor(OneStage, optimized.BadWordsLogitsProcessor):
    """Bad words, by their token ids."""

    field = "words"


class MinTokensLogitsProcessor(OneStage, optimized.MinTokensLogitsProcessor):
    """min-tokens."""

    field = "minimum"


class LogitBiasLogitsProcessor(OneStage, optimized.LogitBiasLogitsProcessor):
    """Logit bias."""

    field = "bias"


class RepetitionPenaltyLogitsProcessor(OneStage, optimized.RepetitionPenaltyLogitsProcessor):
    """Repetition penalty."""

    field = "penalties"


class FrequencyPenaltyLogitsProcessor(OneStage, optimized.FrequencyPenaltyLogitsProcessor):
    """Frequency penalty."""

    field = "penalties"


class PresencePenaltyLogitsProcessor(OneStage, optimized.PresencePenaltyLogitsProcessor):
    """Presence penalty."""

    field = "penalties"


class TemperatureLogitsProcessor(OneStage, optimized.TemperatureLogitsProcessor):
    """Temperature."""

    field = "temperature"


class MinPLogitsProcessor(OneStage, optimized.MinPLogitsProcessor):
    """min-p."""

    field = "log_share"


class TopKLogitsProcessor(OneStage, optimized.TopKLogitsProcessor):
    """top-k."""

    field = "k"


class TopPLogitsProcessor(OneStage, optimized.TopPLogitsProcessor):
    """top-p."""

    field = "p"
