"""The time limit on a subject's calls: one timer, which costs a running call nothing."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SWALLOWED = 3


class TookTooLong(BaseException):
    """Raised inside a subject's call that does not return; not an Exception, so that the subject does not catch it."""


class Watch:
    """Counts calls; a call that is still the same one at two ticks of the timer has taken too long."""

    def __init__(self) -> None:
        self.calls = 0
        self.inside = False
        self.last_tick = -1
        self.raised = 0
        self.seconds = 0.0

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls the function under the limit."""
        self.calls += 1
        self.inside = True
        try:
            return function(*arguments)
        finally:
            self.inside = False

    def tick(self, _: int, frame: FrameType | None) -> None:
        """The timer's handler: interrupts the call, and ends the process when the call will not be interrupted.

        Out of the garbage collector nothing can be raised; the next tick finds the call again. Each tick sets the timer
        for the next: after the whole process has stood still, a timer that repeats by itself ticks twice at once.
        """
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        stuck, self.last_tick = self.inside and self.last_tick == self.calls, self.calls
        if not stuck:
            self.raised = 0
            return
        if is_collecting(frame):
            return
        self.raised += 1
        if self.raised > SWALLOWED:
            print(
                "logitsproc: the subject does not return and cannot be interrupted",
                file=sys.stderr,
                flush=True,
            )
            os._exit(2)
        raise TookTooLong

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Holds every call in the block to between one and two times this many seconds (main thread, POSIX).

        A block in a block has its own limit.
        """
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            yield
            return
        before, self.seconds = self.seconds, seconds
        handler = signal.signal(signal.SIGALRM, self.tick)
        timer = signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            self.seconds = before
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, *((before, 0.0) if before else timer))


def is_collecting(frame: FrameType | None) -> bool:
    """Whether the frame is in a callback of the garbage collector."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None and frame.f_code not in callbacks:
        frame = frame.f_back
    return frame is not None


WATCH = Watch()
