"""What a benchmark's JSON says of the machine beside what pytest-benchmark does: which allocator, and what it does."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from workload import ROWS, VOCAB, faults

KEEPS = "MALLOC_TRIM_THRESHOLD_"
"""Who sets this keeps malloc from returning pages; otherwise every large temporary tensor has to be given new ones."""

FAULTS = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """All is measured on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def softmax_faults(pytestconfig: pytest.Config) -> None:
    """Counted first: what a process has done leaves holes in its heap, and large tensors may fit into them."""
    batch = torch.zeros(ROWS, VOCAB)
    pytestconfig.stash[FAULTS] = min(faults(lambda: batch.softmax(1)) for _ in range(5))


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """torch, the allocator, and the page faults of a softmax of the batch, which shows what the allocator does."""
    machine_info["torch"] = torch.__version__
    machine_info["keeps_pages"] = KEEPS in os.environ
    machine_info["faults"] = config.stash[FAULTS]
