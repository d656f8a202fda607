"""A call that does not return is ended, also when the garbage collector is at work."""

import gc
import os
import signal
import subprocess
import sys
import time
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


PAUSED = """
import time
from logitsproc.conformance.watch import WATCH

def works() -> None:
    print("works", flush=True)
    start = time.process_time()
    while time.process_time() < start + 1:
        pass

with WATCH.limit(4):
    WATCH.call(works)
print("done")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no signals")
def test_a_call_in_a_process_that_stood_still_is_not_one_that_does_not_return() -> None:
    with subprocess.Popen([sys.executable, "-c", PAUSED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "works\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(7.6)
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout.read() == "done\n"


def test_a_limit_in_a_limit_holds_for_its_block() -> None:
    watch = Watch()
    with watch.limit(60):
        start = time.monotonic()
        with watch.limit(0.1), pytest.raises(TookTooLong):
            watch.call(time.sleep, 30)
        assert time.monotonic() < start + 10
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
