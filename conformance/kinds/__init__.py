"""What the suite knows by name: reference row, params to draw, clauses to blame."""

from logitsproc.conformance.kinds.adapter import ADAPTER
from logitsproc.conformance.kinds.kind import SMALLEST_VOCAB, Kind, Pool
from logitsproc.conformance.kinds.pipeline import PIPELINE, STAGES

KINDS = {kind.field: kind for kind in (*STAGES, PIPELINE, ADAPTER)}

__all__ = ["KINDS", "SMALLEST_VOCAB", "STAGES", "Kind", "Pool"]
