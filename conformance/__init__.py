"""The suite: holds any implementation of batch-level logits processors to the contract."""

from logitsproc.conformance.api import NotConformant, check_processor, check_producer
from logitsproc.conformance.bindings import CannotRun

__all__ = ["CannotRun", "NotConformant", "check_processor", "check_producer"]
