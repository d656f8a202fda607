"""A call that does not return is ended, also when the garbage collector is at work."""

import gc
import signal
import sys
from collections.abc import Iterator

import pytest

from logitsproc.conformance.watch import TookTooLong, Watch


def tick(watch: Watch) -> None:
    watch.tick(signal.SIGALRM, sys._getframe())


def test_the_second_tick_in_one_call_ends_it() -> None:
    watch = Watch()
    watch.call(lambda: tick(watch))
    watch.call(lambda: tick(watch))
    tick(watch)
    with pytest.raises(TookTooLong):
        watch.call(lambda: [tick(watch), tick(watch)])


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """What happened in garbage collections; an exception in one is lost."""
    happened: list[str] = []
    before = list(gc.callbacks)
    yield happened
    gc.callbacks[:] = before


def test_a_tick_in_a_garbage_collection_leaves_the_call_to_the_next(collections: list[str]) -> None:
    watch = Watch()

    def collecting(phase: str, _: dict[str, int]) -> None:
        tick(watch)
        collections.append(phase)

    def endless() -> None:
        tick(watch)
        gc.callbacks.append(collecting)
        gc.collect()
        gc.callbacks.remove(collecting)
        collections.append("still running")
        tick(watch)
        collections.append("never")

    with pytest.raises(TookTooLong):
        watch.call(endless)
    assert collections == ["start", "stop", "still running"]
