"""Token ids and values of several rows, packed into tensors for one operation on all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch

MASKED = -math.inf
"""The logit of a token that cannot be sampled."""
TokenIds = npt.NDArray[np.int64]
FloatValues = npt.NDArray[np.float32]
Index = tuple[torch.Tensor, torch.Tensor]
"""(rows, tokens), int64, of equal length, on the device of the logits."""


def token_ids(tokens: Collection[int]) -> TokenIds:
    """The ids as one int64 array, in the order of iteration."""
    return np.fromiter(tokens, np.int64, len(tokens))


def float_values(values: Collection[float]) -> FloatValues:
    """The values as one float32 array, each rounded once, in the order of iteration."""
    return np.fromiter(values, np.float32, len(values))


def pack(rows: Iterable[int], tokens: Sequence[TokenIds], device: torch.device) -> Index:
    """The index of every named token in its row. tokens: one array for each row, and at least one."""
    repeated = np.repeat(np.fromiter(rows, np.int64), [len(ids) for ids in tokens])
    return torch.from_numpy(repeated).to(device), torch.from_numpy(np.concatenate(tokens)).to(device)
