"""Makes Triton's interpreter quicker, for a process that does nothing else with Triton.

It patches the language anew at every call of a function, and looks for an overflow after every sum of integers, which
takes more than half of its time. Here the language is patched once and stays so. Overflows can be left unlooked for;
and as an operation takes the same time whatever its width, all pairs of candidates are compared at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from logitsproc.optimized.gpu import kernels

STAYS = SimpleNamespace(restore=lambda: None)


def once(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function that patches the language as a function sees it, which does nothing where that was done already."""
    done: set[tuple[bool, bool]] = set()

    def patch_once(function: Any) -> Any:
        modules = [value for value in function.__globals__.values() if inspect.ismodule(value)]
        seen = tl in modules, tl.core in modules
        if seen not in done:
            patch(function)
            done.add(seen)
        return STAYS

    return patch_once


def hurry(overflows: bool) -> None:
    """From here on kernels are interpreted quickly. overflows: whether they are still looked for."""
    builder = interpreter.interpreter_builder
    interpreter._patch_lang = once(interpreter._patch_lang)
    builder.options = replace(builder.options, sanitize_overflow=overflows)
    kernels.PAIRS = tl.constexpr(1 << 16)
