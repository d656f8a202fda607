"""Every example in a docstring of the reference and of the suite."""

import doctest
import importlib
import pkgutil
from importlib.util import find_spec

import pytest

import logitsproc.conformance
import logitsproc.optimized
import logitsproc.proofs
import logitsproc.reference

NEED_VLLM = {
    "logitsproc.conformance.producers.vllm_input_batch",
    "logitsproc.conformance.vllm_batch",
    "logitsproc.conformance.vllm_sampler",
    "logitsproc.conformance.vllm_thinking_budget",
    "logitsproc.optimized.vllm",
    "logitsproc.proofs.input_batch",
    "logitsproc.proofs.with_vllm",
}
MODULES = [
    module.name
    for package in (logitsproc.reference, logitsproc.conformance, logitsproc.optimized, logitsproc.proofs)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if module.name not in NEED_VLLM or find_spec("vllm")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_function_of_the_reference_has_an_example() -> None:
    for name in MODULES:
        if name.startswith("logitsproc.reference."):
            module = importlib.import_module(name)
            for function in vars(module).values():
                if (
                    callable(function)
                    and getattr(function, "__module__", "") == name
                    and not isinstance(function, type)
                ):
                    assert ">>>" in (function.__doc__ or "") or function.__name__ in (module.__doc__ or ""), function
