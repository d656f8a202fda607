"""The parts of a run on a device: each says in a line what came out, and raises where something is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import eager
import numpy as np
import torch
import triton
import workload
from results import table

from logitsproc.conformance.bindings import plain_binding
from logitsproc.conformance.interface import host_config
from logitsproc.optimized import gpu

HERE = Path(__file__).resolve().parent
MICROSECONDS = 1e6
KERNELS = ("update", "scan", "select", "slow", "emit")
BYTES = 4
SECONDS = 300
"""Limit for the suite, and for the search for races."""
NEAR = 1000
"""One of so many tokens of a row may be near enough to the edge of top-p that rounding decides."""
RACES_ROWS, RACES_VOCAB = 3, 5000


class Shapes(NamedTuple):
    """What is played and measured. copies: of the logits, one for each pipeline of a graph. rounds: how often.
    histories: of the suite, 0 for those of the quick tier."""

    rows: tuple[int, ...]
    vocabs: tuple[int, ...]
    checked: tuple[int, int]
    steps: int
    copies: int
    rounds: int
    histories: int


DEVICE = Shapes((1, 8, 64, 256), (32000, 128256), (64, 128256), 40, 8, 15, 0)
DRY = Shapes((1, 2), (64,), (6, 300), 3, 1, 1, 2)


class Measured(NamedTuple):
    """Of one shape and kind of logits, seconds: of a copy of the logits, of each kernel, and of wholes."""

    rows: int
    vocab: int
    kind: str
    copied: float
    kernels: dict[str, float]
    in_place: float
    apart: float
    eagerly: float
    host: float


class Session:
    """A device, the shapes, and what has been measured there."""

    def __init__(self, device: str, shapes: Shapes) -> None:
        self.device = torch.device(device)
        self.shapes = shapes
        self.measured: list[Measured] = []

    def parts(self) -> dict[str, Callable[[], str]]:
        """All of them, in order."""
        return {
            "device": self.environment,
            "beside the CPU backend": self.beside_cpu,
            "conformance suite": self.suite,
            "host waits for nothing": self.without_waiting,
            "races": self.races,
            "measured": self.measure,
        }

    def environment(self) -> str:
        """What it runs on."""
        name = torch.cuda.get_device_name() if self.is_gpu else "kernels interpreted on the CPU"
        return f"{name}; torch {torch.__version__}, triton {triton.__version__}, Python {sys.version.split()[0]}"

    @property
    def is_gpu(self) -> bool:
        """Whether there is a GPU."""
        return self.device.type != "cpu"

    def started(self, rows: int, vocab: int, stages: tuple[str, ...] = workload.BUT_THE_LIST) -> tuple[Any, list[Any]]:
        """A pipeline on the device with a batch that asks for these stages, and the batch."""
        binding = plain_binding()
        batch = workload.requests(binding, rows, vocab, stages)
        processor = gpu.Pipeline(host_config(vocab, rows), self.device, False, custom=())
        processor.update_state(workload.filling(binding, batch))
        return processor, batch

    def beside_cpu(self) -> str:
        """Every stage and all of them, on both kinds of logits: the CPU backend's bits, but for some at the edge of
        top-p."""
        rows, vocab = self.shapes.checked
        compared = near = 0
        for kind in (workload.PEAKED, workload.FLAT):
            logits = workload.logits(rows, vocab, kind)
            for stages in [*((stage,) for stage in workload.ALL), workload.ALL, workload.BUT_THE_LIST]:
                processor, batch = self.started(rows, vocab, stages)
                expected = workload.pipeline(vocab, rows)
                expected.update_state(workload.filling(plain_binding(), batch))
                mine = processor.apply(logits.to(self.device, copy=True)).cpu()
                differing = mine.view(torch.int32) != expected.apply(logits.clone()).view(torch.int32)
                if int(differing.sum(1).max()) > (vocab // NEAR if "top_p" in stages else 0):
                    raise AssertionError(f"{stages} on {kind} logits: {int(differing.sum())} logits differ")
                compared, near = compared + differing.numel(), near + int(differing.sum())
        return f"{compared:,} logits, {near} of them differ, at the edge of top-p"

    def suite(self) -> str:
        """Every class, judged on the device."""
        limits = ["--histories", str(self.shapes.histories)] if self.shapes.histories else []
        command = [sys.executable, str(HERE / "judge.py"), "--device", self.device.type, "--jobs", "4", *limits]
        names = [] if self.is_gpu else ["LogitBiasLogitsProcessor"]
        done = subprocess.run([*command, *names], capture_output=True, text=True, timeout=SECONDS)
        print(done.stdout, end="")
        if "violation" in done.stdout or (done.returncode and not limits):
            raise AssertionError(f"exit status {done.returncode} {done.stderr[-500:]}")
        return f"{done.stdout.count('conformant on')} of {done.stdout.count('judged by')} conformant"

    def without_waiting(self) -> str:
        """Steps with churn and growing outputs, with every wait of the host an error; the graph of the launches too."""
        rows, vocab = self.shapes.checked
        processor, batch = self.started(rows, vocab)
        logits = workload.logits(rows, vocab, workload.PEAKED).to(self.device, copy=True)
        processor.apply(logits.clone())
        step, back = workload.churn(plain_binding(), batch, rows // 4, rows // 4)
        with waiting_is_an_error(self.is_gpu):
            for number in range(self.shapes.steps):
                for _, _, output in batch:
                    output.append(number)
                processor.update_state((None, step, back)[number % 3])
                processor.apply(logits)
        return f"{self.shapes.steps} steps" + ("" if self.is_gpu else ", of which only a GPU would show a wait")

    def races(self) -> str:
        """The compute sanitizer on a small batch."""
        tool = shutil.which("compute-sanitizer")
        if not self.is_gpu or tool is None:
            return "not looked for: there is no compute-sanitizer" if self.is_gpu else "not looked for without a GPU"
        small = [sys.executable, str(HERE / "small.py"), str(RACES_ROWS), str(RACES_VOCAB)]
        done = subprocess.run([tool, "--tool", "racecheck", *small], capture_output=True, text=True, timeout=SECONDS)
        summary = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
        if done.returncode or not summary:
            return f"not looked for: {(done.stdout + done.stderr).strip().splitlines()[-1:]}"
        if "0 hazards" not in summary[-1]:
            raise AssertionError(summary[-1])
        return summary[-1].strip("= ")

    def measure(self) -> str:
        """Every shape and kind of logits."""
        for vocab in self.shapes.vocabs:
            for rows in self.shapes.rows:
                for kind in (workload.PEAKED, workload.FLAT):
                    self.measured.append(self.measure_one(rows, vocab, kind))
                    if self.is_gpu:
                        torch.cuda.empty_cache()
        return f"{len(self.measured)} shapes"

    def measure_one(self, rows: int, vocab: int, kind: str) -> Measured:
        """Medians of as many rounds; a graph has as many copies of the logits, which are fresh in every round."""
        processor, batch = self.started(rows, vocab)
        base = workload.logits(rows, vocab, kind).to(self.device, copy=True)
        buffers = [base.clone() for _ in range(self.shapes.copies)]
        outs = [torch.empty_like(base) for _ in buffers]
        processor.prepare(base)
        processor.batch.launch(buffers[0], buffers[0])
        processor.prepare(base)
        runs = [processor.batch.launches(each, each) for each in buffers]
        apart = [processor.batch.launches(each, out) for each, out in zip(buffers, outs, strict=True)]
        stage = eager.every_stage(eager.asked(batch, vocab, self.device))

        def refill() -> None:
            for each in buffers:
                each.copy_(base)

        one_by_one = {name: self.graph([run[name] for run in runs]) for name in runs[0]}
        whole = self.graph([launch for run in runs for launch in run.values()])
        other = self.graph([launch for run in apart for launch in run.values()])
        copies = self.graph([copying(each, out) for each, out in zip(buffers, outs, strict=True)])
        of_kernels: dict[str, list[float]] = {name: [] for name in one_by_one}
        for _ in range(self.shapes.rounds):
            refill()
            for name, replay in one_by_one.items():
                of_kernels[name].append(self.timed(replay))
        eagerly = self.seconds(lambda: stage(base.clone()), refill)
        many = len(buffers)
        return Measured(
            rows,
            vocab,
            kind,
            self.seconds(copies, refill) / many,
            {name: median(of) / many for name, of in of_kernels.items()},
            self.seconds(whole, refill) / many,
            self.seconds(other, refill) / many,
            eagerly,
            self.host_seconds(processor, batch, base),
        )

    def graph(self, launches: list[Callable[[], object]]) -> Callable[[], object]:
        """The launches as a graph, warm; one after the other where there is no GPU."""

        def run() -> None:
            with np.errstate(all="ignore"):
                for launch in launches:
                    launch()

        run()
        if not self.is_gpu:
            return run
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            run()
        return captured.replay

    def seconds(self, run: Callable[[], object], refill: Callable[[], None]) -> float:
        """The median of as many rounds."""
        times = []
        for _ in range(self.shapes.rounds):
            refill()
            times.append(self.timed(run))
        return median(times)

    def timed(self, run: Callable[[], object]) -> float:
        """Seconds on the device, or of the interpreter."""
        if not self.is_gpu:
            start = perf_counter()
            run()
            return perf_counter() - start
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000

    def host_seconds(self, processor: Any, batch: list[Any], base: torch.Tensor) -> float:
        """What the host does in a quiet step with one new token in every output."""
        times = []
        for number in range(self.shapes.rounds):
            for _, _, output in batch:
                output.append(number)
            start = perf_counter()
            processor.prepare(base)
            times.append(perf_counter() - start)
        return median(times)

    def table(self) -> str:
        """Microseconds, and how many times the copy a whole is; without a GPU what ran, and no times."""
        unit = "microseconds, medians, graph replay" if self.is_gpu else "interpreted, so no times"
        wholes = [cell for name in ("in place", "apart", "eager") for cell in (name, "x copy")]
        head = ["logits", "rows", "vocab", "copy", *KERNELS, *wholes, "host"]
        rows = []
        for each in self.measured:
            times = [each.copied, *(each.kernels[name] for name in KERNELS)]
            for whole in (each.in_place, each.apart, each.eagerly):
                times += [whole, whole / each.copied / MICROSECONDS]
            cells = [f"{time * MICROSECONDS:,.2f}" if self.is_gpu else "ran" for time in (*times, each.host)]
            rows.append([each.kind, each.rows, each.vocab, *cells])
        lines = [f"{self.environment()}; {unit}", "", table(head, rows)]
        if self.is_gpu and self.measured:
            last = self.measured[-1]
            rate = 2 * BYTES * last.rows * last.vocab / last.copied / 1e9
            lines += ["", f"The copy at {last.rows} x {last.vocab} moves {rate:,.0f} GB/s."]
        return "\n".join(lines)


def copying(source: torch.Tensor, destination: torch.Tensor) -> Callable[[], object]:
    """A copy, which reads and writes the logits once."""
    return lambda: destination.copy_(source)


@contextmanager
def waiting_is_an_error(is_gpu: bool) -> Iterator[None]:
    """Where torch would wait for the device, it raises."""
    if is_gpu:
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if is_gpu:
            torch.cuda.set_sync_debug_mode("default")
