"""Compiles every kernel for a GPU of compute capability 9.0, where there need be none: `compiled.py`.

It has to run in a process where kernels are not interpreted. One line for each kernel and size, as JSON: registers,
bytes that are spilled to the stack, instructions that read and write four words at once, and bytes of shared memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from logitsproc.optimized.gpu import kernels
from logitsproc.optimized.gpu.batch import WARPS, WIDTHS, power
from logitsproc.optimized.gpu.slots import words

TARGET = GPUTarget("cuda", 90, 32)
VOCABS = (32000, 128256, 262144)
FLOATS = {"logits", "out", "masses", "values"}
INTEGERS = {"slots", "mail", "maxima", "found", "tokens", "counts", "status"}
ALIGNED = FLOATS | INTEGERS | {
    *("stride", "out_stride", "vocab", "size", "biased_at", "values_at", "banned_at", "allowed_at", "seen_at"),
    "counts_at",
}  # fmt: skip
"""Arguments that are multiples of 16 for the vocabularies of language models, which Triton looks for at a launch."""
SPILLED = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")


class Compiled(NamedTuple):
    """What a kernel has become."""

    kernel: str
    sizes: dict[str, Any]
    warps: int
    registers: int
    spilled: int
    vector_loads: int
    vector_stores: int
    shared: int


def variants() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every kernel with the sizes that it is launched with."""
    yield "update", {"BLOCK": 128}
    for is_apart in (False, True):
        yield "scan", {"GROUPS": 64, "APART": is_apart}
        for vocab in VOCABS:
            for width in WIDTHS:
                groups = power(words(vocab))
                sizes = {"ALL": groups, "SLICES": 4, "WIDTH": width, "PART": 32, "APART": is_apart}
                if vocab == VOCABS[1] or width == WIDTHS[0]:
                    yield "select", sizes
    yield "slow", {"GROUPS": 16}
    yield "emit", {"GROUPS": 64, "WIDTH": WIDTHS[0], "PART": 128}


def compiled(name: str, sizes: dict[str, Any]) -> Compiled:
    """One kernel, compiled."""
    function = getattr(kernels, name)
    names = function.arg_names
    kinds = {each: "*fp32" if each in FLOATS else "*i32" if each in INTEGERS else "i32" for each in names}
    source = ASTSource(
        function,
        kinds | dict.fromkeys(sizes, "constexpr"),
        constexprs={(names.index(each),): value for each, value in sizes.items()},
        attrs={(place,): [["tt.divisibility", 16]] for place, each in enumerate(names) if each in ALIGNED},
    )
    options = {"num_warps": WARPS[name], "enable_fp_fusion": False}
    made = triton.compile(source, target=TARGET, options=options)
    registers, stack, local = usage(made.asm["cubin"])
    loads, stores = (made.asm["ptx"].count(f"{what}.global.v4") for what in ("ld", "st"))
    return Compiled(name, sizes, WARPS[name], registers, stack + local, loads, stores, made.metadata.shared)


def usage(binary: bytes) -> tuple[int, int, int]:
    """Registers, bytes of stack and of local memory, as the tool that comes with Triton reads them."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        said = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True)
    found = SPILLED.search(said.stdout)
    if found is None:
        sys.exit(f"cuobjdump says nothing of registers: {said.stdout!r}")
    registers, stack, local = map(int, found.groups())
    return registers, stack, local


def main() -> None:
    """Prints all of them."""
    for name, sizes in variants():
        print(json.dumps(compiled(name, sizes)._asdict()), flush=True)


if __name__ == "__main__":
    main()
