"""What is no logits processor is a subject too, through a few lines of its author's."""

from typing import Any

import pytest
import torch

from logitsproc.conformance import CannotRun, NotConformant, check_processor
from logitsproc.conformance.bindings import load_subject, plain_binding
from logitsproc.conformance.consumers import Consumer

pytestmark = pytest.mark.usefixtures("short_tier")

PARAMS = [{"extra_args": {"quota": 0}}, {"extra_args": {"quota": 2}}]
STOP = 7


class Quotas:
    """A request with a quota may say so many tokens; with names of its own, and outputs handed over at each call."""

    def __init__(self) -> None:
        self.left: dict[int, int] = {}

    def follow(self, update: Any) -> None:
        for row in update.removed:
            self.left.pop(row, None)
        for row, params, _, _ in update.added:
            self.put(row, (params.extra_args or {}).get("quota"))
        for source, destination, direction in update.moved:
            moved, replaced = self.left.pop(source, None), self.left.pop(destination, None)
            self.put(destination, moved)
            self.put(source, replaced if direction.name == "SWAP" else None)

    def put(self, row: int, quota: int | None) -> None:
        self.left.pop(row, None)
        if quota is not None:
            self.left[row] = quota

    def stop(self, logits: torch.Tensor, outputs: list[list[int]]) -> torch.Tensor:
        for row, quota in self.left.items():
            if len(outputs[row]) >= quota:
                logits[row, STOP] = 100.0
        return logits


class KeepsReplaced(Quotas):
    """UPD-DROP: a one-way move of a request without a quota leaves the destination's."""

    def follow(self, update: Any) -> None:
        before = dict(self.left)
        super().follow(update)
        for _, destination, direction in update.moved:
            if direction.name == "UNIDIRECTIONAL" and destination in before and destination not in update.removed:
                self.left.setdefault(destination, before[destination])


class QuotasAdapter(Consumer):
    """The adapter, as an author writes it."""

    QUOTAS = Quotas

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.quotas = self.QUOTAS()

    def sync(self, batch_update: Any) -> None:
        self.quotas.follow(batch_update)

    def transform(self, logits: torch.Tensor) -> torch.Tensor:
        return self.quotas.stop(logits, self.outputs)


class KeepsReplacedAdapter(QuotasAdapter):
    QUOTAS = KeepsReplaced


class HalfAnAdapter(Consumer):
    def sync(self, batch_update: Any) -> None:
        pass


def test_a_right_consumer_is_conformant_on_every_well_formed_update() -> None:
    report = check_processor(QuotasAdapter, params=PARAMS)
    assert report.verdict == "conformant"
    assert report.scope == "every well-formed update"
    held = {result.clause.id for result in report.results if result.status == "held"}
    assert {"UPD-DROP", "UPD-SWAP", "PROC-LIVE-OUTPUTS", "PROC-QUIET"} <= held


def test_a_wrong_consumer_is_caught_by_its_clause_on_the_smallest_history() -> None:
    with pytest.raises(NotConformant, match="breaks UPD-DROP") as caught:
        check_processor(KeepsReplacedAdapter, params=PARAMS)
    failure = caught.value.report.failure
    assert failure is not None
    assert len(failure.history.steps) == 2


def test_outputs_are_the_live_lists_by_row_and_empty_for_a_hole() -> None:
    host = plain_binding()
    consumer = load_subject(QuotasAdapter).build(8)
    lists: list[list[int]] = [[1], [2], [3]]
    consumer.update_state(
        host.batch_update(3, [], [(row, host.make_params({}), None, lists[row]) for row in range(3)], [])
    )
    one_way = host.directions["UNIDIRECTIONAL"]
    consumer.update_state(host.batch_update(2, [0], [], [(2, 1, one_way)]))
    lists[2].append(4)
    assert consumer.outputs == [[], [3, 4]]
    assert consumer.outputs[1] is lists[2]


def test_an_adapter_that_lacks_a_method_cannot_run() -> None:
    with pytest.raises(CannotRun, match=r"HalfAnAdapter is abstract: it does not implement transform\(\)"):
        check_processor(HalfAnAdapter)
