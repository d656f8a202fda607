"""What the suite knows by name: reference row, params to draw, clauses to blame."""

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.kinds.adapter import ADAPTER
from logitsproc.conformance.kinds.kind import SMALLEST_VOCAB, Kind, Pool
from logitsproc.conformance.kinds.pipeline import PIPELINE, STAGES

KINDS = {kind.field: kind for kind in (*STAGES, PIPELINE, ADAPTER)}

__all__ = ["KINDS", "SMALLEST_VOCAB", "STAGES", "Kind", "Pool", "kind_named"]


def kind_named(field: str | None) -> Kind | None:
    """The kind of a SamplingParams field; raises CannotRun when the suite has no reference for it."""
    if field is None:
        return None
    if field not in KINDS:
        raise CannotRun(f"no reference for {field!r}; there are {', '.join(KINDS)}")
    return KINDS[field]
