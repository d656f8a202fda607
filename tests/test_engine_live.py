"""The live check beside an engine, on a made-up one: what is wrong is found, with its clause."""

import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality, SamplingParams, host_config
from logitsproc.optimized import LogitBiasLogitsProcessor, MinPLogitsProcessor

sys.path.insert(0, str(Path(__file__).parent / "engine"))
from live import Ledger
from traffic import Drawn

VOCAB = 8
SWAP = (0, 1, MoveDirectionality.SWAP)
FIELDS: dict[str, dict[str, Any]] = {"A": {"min_p": 0.5}, "B": {"logit_bias": {3: 2.0}}, "C": {}}
Damage = Callable[["Made"], None]


class Processors:
    """vLLM's container of processors."""

    def __init__(self) -> None:
        made = host_config(VOCAB, 4), torch.device("cpu"), False
        self.argmax_invariant: list[Any] = [MinPLogitsProcessor(*made)]
        self.non_argmax_invariant: list[Any] = [LogitBiasLogitsProcessor(*made)]

    @property
    def all(self) -> Iterator[Any]:
        return chain(self.argmax_invariant, self.non_argmax_invariant)


class Made:
    """An engine of three requests, A and B in the batch from the first step on; its parts can be damaged."""

    def __init__(self) -> None:
        self.states = {name: SimpleNamespace(output_token_ids=[]) for name in FIELDS}
        known = {name: SimpleNamespace(output_token_ids=[]) for name in FIELDS}
        self.batch = SimpleNamespace(req_ids=[], req_output_token_ids=[], num_reqs=0, logitsprocs=Processors())
        hooks = SimpleNamespace(register_forward_pre_hook=lambda hook, with_kwargs: None)
        runner = SimpleNamespace(
            input_batch=self.batch, requests=self.states, sampler=hooks, use_async_scheduling=False
        )
        driver = SimpleNamespace(worker=SimpleNamespace(model_runner=runner))
        core = SimpleNamespace(
            scheduler=SimpleNamespace(requests=known), model_executor=SimpleNamespace(driver_worker=driver)
        )
        engine = SimpleNamespace(engine_core=SimpleNamespace(engine_core=core))
        self.ledger = Ledger(engine, {name: Drawn(fields, [1, 2], 0) for name, fields in FIELDS.items()})
        self.skips = False
        self.step(self.update(2, added="AB"), "AB")

    def update(
        self, size: int, removed: tuple[int, ...] = (), added: str = "", moved: tuple[Any, ...] = (), first: int = 0
    ) -> BatchUpdate:
        """An update that adds requests by name, from row `first` on."""
        items = [
            (row, SamplingParams(**FIELDS[name]), [1, 2], self.states[name].output_token_ids)
            for row, name in enumerate(added, first)
        ]
        return BatchUpdate(size, list(removed), items, list(moved))

    def step(self, update: BatchUpdate | None, rows: str) -> None:
        """The engine's own rows, update_state, and apply as its sampler calls it."""
        self.batch.req_ids = list(rows)
        self.batch.num_reqs = len(rows)
        self.batch.req_output_token_ids = [self.states[name].output_token_ids for name in rows]
        for processor in self.batch.logitsprocs.all:
            processor.update_state(update)
        logits = torch.arange(len(rows) * VOCAB, dtype=torch.float32).reshape(len(rows), VOCAB) % 5
        self.ledger.sampling(None, (), {"logits": logits})
        invariant = [] if self.skips else self.batch.logitsprocs.argmax_invariant
        for processor in (*self.batch.logitsprocs.non_argmax_invariant, *invariant):
            logits = processor.apply(logits)


def damaged_outputs(made: Made) -> None:
    made.states["B"].output_token_ids.append(4)
    made.step(None, "AB")


def placeholder(made: Made) -> None:
    made.states["B"].output_token_ids.append(-1)
    made.step(None, "AB")


def other_list(made: Made) -> None:
    made.states["B"].output_token_ids = []
    made.step(None, "AB")


def skips_one(made: Made) -> None:
    made.skips = True
    made.step(None, "AB")
    made.ledger.finish()


def forgets(made: Made) -> None:
    made.ledger.order[0].processor.users.states.clear()
    made.ledger.order[0].processor.batch = None
    made.step(None, "AB")


def stale(made: Made) -> None:
    made.ledger.order[1].processor.update_state = lambda update: None
    made.step(made.update(2, moved=(SWAP,)), "BA")


def raises(made: Made) -> None:
    made.ledger.order[0].processor.apply = None
    made.step(None, "AB")


def other_shape(made: Made) -> None:
    made.ledger.order[0].processor.apply = lambda logits: logits[:1]
    made.step(None, "AB")


def clears_the_update(made: Made) -> None:
    made.ledger.order[0].processor.update_state = lambda update: update.moved.clear()
    made.step(made.update(2, moved=(SWAP,)), "BA")


def test_what_an_engine_does_is_right() -> None:
    made = Made()
    made.step(made.update(3, added="C", first=2), "ABC")
    made.step(made.update(3, moved=(SWAP,)), "BAC")
    made.step(made.update(2, moved=((2, 0, MoveDirectionality.UNIDIRECTIONAL),)), "CA")
    made.step(None, "CA")
    made.ledger.finish()
    assert made.ledger.differences == []
    assert made.ledger.counts["rows judged"] == 12 * 2 * 2
    assert made.ledger.counts["updates"] == 4
    assert made.ledger.counts["swaps"] == made.ledger.counts["one-way moves"] == 1


@pytest.mark.parametrize(
    ("damage", "clause"),
    [
        (lambda made: made.step(None, "BA"), "PROD-NONE"),
        (lambda made: made.step(made.update(2), "AB"), "PROD-NONE"),
        (lambda made: made.step(made.update(2, moved=(SWAP,)), "AB"), "PROD-REPLAY"),
        (lambda made: made.step(made.update(2, removed=(5,)), "AB"), "PROD-RANGE"),
        (lambda made: made.step(made.update(3, moved=(SWAP,)), "BA"), "PROD-SIZE"),
        (lambda made: made.step(made.update(2, removed=(0,), added="C"), "CB"), "PROD-DISJOINT"),
        (lambda made: made.step(made.update(2, removed=(0,)), "AB"), "PROD-REPLAY"),
        (other_list, "PROD-LIVE"),
        (damaged_outputs, "PROD-LIVE"),
        (placeholder, "PROC-PLACEHOLDER"),
        (skips_one, "PIPE-SKIP"),
        (forgets, "PROC-FUNCTION"),
        (stale, "PROC-UNTOUCHED"),
        (raises, "PROC-EXCEPTION"),
        (other_shape, "PROC-SHAPE"),
        (clears_the_update, "PROC-READONLY"),
    ],
)
def test_what_is_wrong_is_found(damage: Damage, clause: str) -> None:
    made = Made()
    assert made.ledger.differences == []
    damage(made)
    assert made.ledger.differences[0].clause == clause
