"""What a check finds that needs no history: the clause, and what is wrong, with the lines that show it."""

from __future__ import annotations

from dataclasses import dataclass

from logitsproc.conformance.bindings import VLLM, Subject

CONFIG = "from logitsproc.conformance.interface import host_config"
PARAMS = {
    VLLM: "from vllm import SamplingParams",
    "plain": "from logitsproc.conformance.interface import SamplingParams",
}


@dataclass(frozen=True)
class Finding:
    """One occasion of a clause. `trouble` says what is wrong, or is None when nothing is; `lines` repeat it."""

    clause: str
    trouble: str | None = None
    lines: tuple[str, ...] = ()


def import_line(subject: Subject) -> str:
    """`from module import Class`."""
    module, _, qualified = subject.target.partition(":")
    return f"from {module} import {qualified.partition('.')[0]}"


def class_name(subject: Subject) -> str:
    """The class as the import line gives it."""
    return subject.target.partition(":")[2]


def params_line(subject: Subject) -> str:
    """The import of the host's params."""
    return PARAMS[subject.binding.name]
