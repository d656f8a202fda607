"""The command line: check, known, badge, replay, usage, mutants, prove, spec, cite, drift."""

from __future__ import annotations

import fnmatch
import importlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, track
from rich.table import Table

from logitsproc import spec
from logitsproc.conformance.badge import badge
from logitsproc.conformance.bindings import AUTO, PLAIN, VLLM, CannotRun, load_subject
from logitsproc.conformance.drift import (
    MOVED_ON,
    NOT_COMPARED,
    TO_REREAD,
    Finding,
    Upstream,
    cited,
    compare,
    drift_json,
    installed_root,
    observe,
    pinned,
    to_reread,
)
from logitsproc.conformance.explanation import (
    count,
    evidence_line,
    excuse_line,
    explanation,
    in_question,
    indented,
    verdict_line,
)
from logitsproc.conformance.formats import read_reports, require_writable, write_json, write_junit, write_whole
from logitsproc.conformance.github import is_github, tell_github
from logitsproc.conformance.history import History, batches
from logitsproc.conformance.kinds import KINDS, kind_named
from logitsproc.conformance.known import add_known, known_of, read_known
from logitsproc.conformance.mutants.campaign import fates
from logitsproc.conformance.mutants.derived import all_mutants
from logitsproc.conformance.mutants.matrix import ALIVE, EQUIVALENT, OTHERWISE, RIGHT, draw, matrix, require_picture
from logitsproc.conformance.notation import format_drawing, format_history
from logitsproc.conformance.page import write_html
from logitsproc.conformance.params import read_params
from logitsproc.conformance.producers.suite import load_producer, run_producer
from logitsproc.conformance.recording import Recording, is_recording, read_bytes, read_recording, to_recording
from logitsproc.conformance.replaying import first_breach, play_history, play_recording, summary, to_history
from logitsproc.conformance.suite import DEFAULT_SEED, TIERS, UNPROVEN, ClauseResult, Failure, Report, Settings, run
from logitsproc.conformance.usage import usage

CANNOT_RUN = 2
SCOPES = ("reachable", "literal")
SOURCES = ("recorded", "reachable", "beyond")
PROOFS = "logitsproc.proofs.prove"
USAGE_WIDTH, MUTANTS_WIDTH, PROOFS_WIDTH, DRIFT_WIDTH = 110, 200, 160, 180
T = TypeVar("T")

app = typer.Typer(
    help="The contract of batch-level logits processors: check an implementation, cite a clause.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Terminal(Console):
    """A console whose reader may go away; that is no violation, so the exit status is not 1."""

    def on_broken_pipe(self) -> None:
        """Ends the process without a traceback."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(CANNOT_RUN)


out = Terminal(highlight=False, soft_wrap=True, emoji=False)
err = Terminal(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def one_of(value: str, choices: tuple[str, ...], option: str) -> str:
    """The value; raises CannotRun when it is not one of the choices."""
    if value not in choices:
        raise CannotRun(f"{option} {value}: there are {', '.join(choices)}")
    return value


@app.command()
def check(
    context: typer.Context,
    targets: Annotated[
        list[str], typer.Argument(metavar="TARGET...", help="module:Class of a logits processor, or a producer.")
    ],
    kind: Annotated[str | None, typer.Option("--as", help=f"What it implements: {', '.join(KINDS)}.")] = None,
    oracle: Annotated[str | None, typer.Option(help="module:function, the author's own row function.")] = None,
    params: Annotated[Path | None, typer.Option(help="JSON list of SamplingParams fields to draw from.")] = None,
    tier: Annotated[str, typer.Option(help="quick (20 s at most), ci (5 min) or deep (--minutes).")] = "quick",
    seed: Annotated[int, typer.Option(help="Which histories.")] = DEFAULT_SEED,
    clauses: Annotated[str, typer.Option(help="Only clauses whose id matches, as UPD-*.")] = "*",
    scope: Annotated[str, typer.Option(help="reachable, or literal: every well-formed update.")] = "reachable",
    binding: Annotated[str, typer.Option(help="auto, vllm or plain: whose types the subject is fed.")] = AUTO,
    device: Annotated[str, typer.Option(help="Where the logits are, as cuda.")] = "cpu",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the report as JUnit XML.")] = None,
    page: Annotated[Path | None, typer.Option("--report", help="Write the report as one HTML page.")] = None,
    known: Annotated[Path | None, typer.Option(help="TOML file of failures that are excused.")] = None,
    step_seconds: Annotated[float, typer.Option(min=0.1, help="Limit on one call of the subject.")] = 5.0,
    minutes: Annotated[float, typer.Option(min=0.1, help="The budget of the deep tier.")] = 30.0,
    producer: Annotated[bool, typer.Option("--producer", help="The targets are producers.")] = False,
) -> None:
    """Judge processors, or producers: exit 0 conformant, 1 violation, 2 cannot run, 3 unproven."""
    with cannot_run():
        one_of(tier, tuple(TIERS), "--tier")
        one_of(scope, SCOPES, "--scope")
        one_of(binding, (AUTO, VLLM, PLAIN), "--binding")
        if kind is not None and oracle is not None:
            raise CannotRun("--as and --oracle both say what is right; give one")
        if producer and (kind, oracle, scope, device) != (None, None, SCOPES[0], "cpu"):
            raise CannotRun("--as, --oracle, --scope and --device are for processors, not for producers")
        if producer and known is not None:
            raise CannotRun("--known is for processors: a producer's history is what it emitted, not what it was asked")
        for file in (json_file, junit, page):
            require_writable(file)
        pool = None if params is None else read_params(params)
        chosen = kind_named(kind)
        load = load_producer if producer else partial(load_subject, device=device)
        subjects = [load(target, binding) for target in targets]
        excused = [] if known is None else read_known(known)
        reports = []
        for subject in subjects:
            entries = known_of(excused, subject, chosen)
            settings = Settings(subject, chosen, oracle, pool, tier, seed, scope, clauses, step_seconds, known=entries)
            budget = minutes * 60 if tier == "deep" else None
            reports.append(run_with_progress(run_producer if producer else run, settings, budget))
            show(reports[-1])
        if json_file is not None:
            write_json(reports, json_file)
        if junit is not None:
            write_junit(reports, junit)
        if page is not None:
            write_html(reports, page, command_line(context))
        if is_github(os.environ):
            tell_github(reports, os.environ)
    statuses = [report.exit_status for report in reports]
    raise typer.Exit(1 if 1 in statuses else max(statuses))


def command_line(context: typer.Context) -> str:
    """The command under way, as it can be typed again: arguments, and options that are not as they are by default."""
    parts = ["logitsproc", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params[str(parameter.name)]
        if parameter.param_type_name == "argument":
            parts += value
        elif value not in (None, parameter.default):
            parts += [parameter.opts[0]] if value is True else [parameter.opts[0], str(value)]
    return shlex.join(parts)


@contextmanager
def cannot_run() -> Iterator[None]:
    """Turns CannotRun into one line on the standard error and exit status 2."""
    try:
        yield
    except CannotRun as error:
        err.print(f"logitsproc: {escape(str(error))}")
        raise typer.Exit(CANNOT_RUN) from None


def run_with_progress(runs: Callable[[Settings], Report], settings: Settings, seconds: float | None) -> Report:
    """The run, with a progress bar on a terminal."""
    if not err.is_terminal:
        return runs(replace(settings, seconds=seconds))
    with Progress(console=err, transient=True) as bar:
        tasks: dict[str, int] = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = int(bar.add_task(stage, total=total))
            bar.update(tasks[stage], completed=done)  # type: ignore[arg-type]

        return runs(replace(settings, seconds=seconds, progress=progress))


def show(report: Report) -> None:
    """Prints verdict, evidence, and what failed."""
    settings = report.settings
    style = {0: "bold green", 1: "bold red", 3: "bold yellow"}[report.exit_status]
    out.print(f"[{style}]{escape(verdict_line(report))}[/]")
    out.print(f"  {escape(evidence_line(report))}")
    out.print(
        f"  canary caught; {settings.subject.binding.name} types; {settings.tier} tier; seed {settings.seed}; "
        f"{report.seconds:.1f} s"
    )
    for excuse in report.known:
        out.print(f"  {escape(excuse_line(excuse))}")
    for failure in report.outside:
        out.print(f"  outside --clauses: {failure.clause.id}, {escape(failure.violation.message)}")
    if report.failure is not None:
        out.print()
        out.print(explanation(report.failure, settings.subject))
        return
    for beyond in report.beyond:
        if beyond.failure is not None:
            show_beyond(beyond.world.says, beyond.failure)
        elif not beyond.complete:
            out.print(f"  not judged on {escape(beyond.world.says)}: time was up")
    out.print(evidence_table(report))
    if report.verdict == UNPROVEN and report.drawn:
        out.print("Without a witness a clause is unproven. Give params that use the processor: --params FILE.json")


def show_beyond(says: str, failure: Failure) -> None:
    """Prints where a processor that holds on reachable updates does not hold."""
    steps = count(len(failure.history.steps), "step")
    out.print(f"  [yellow]does not hold on {escape(says)}[/]: {failure.clause.id}, {steps}")
    out.print(indented(format_history(failure.history, failure.asked)), markup=False)


def evidence_table(report: Report) -> Table:
    """A row for each clause that was in scope."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("clause", "level", "fired", "witnessed", "result"):
        numeric = heading in ("fired", "witnessed")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=heading != "result")
    for result in in_question(report):
        table.add_row(
            result.clause.id,
            result.clause.level,
            f"{result.fired:,}",
            f"{result.witnessed:,}",
            shown_result(result),
        )
    return table


def shown_result(result: ClauseResult) -> str:
    """The result in a few words; where a SHOULD is not met stands above the table."""
    if result.status == "not met" and result.clause.id != "PROC-IDLE":
        return "not met, see above"
    return f"{result.status}: {result.note}" if result.note else result.status


known_failures = typer.Typer(help="Failures that are excused while their histories still fail.", no_args_is_help=True)
app.add_typer(known_failures, name="known")


@known_failures.callback()
def of_known_failures() -> None:
    """Makes `add` a command of its own, though it is the only one."""


@known_failures.command("add")
def add(
    report: Annotated[Path, typer.Argument(metavar="REPORT.json", help="What check --json wrote.")],
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The known failures, as check --known reads them.")],
    reason: Annotated[str, typer.Option(help="Why they are excused.")],
) -> None:
    """Write an entry for each failure of a report: exit 0 written, 2 cannot be known, or is known already."""
    with cannot_run():
        require_writable(file)
        if not reason.strip():
            raise CannotRun("--reason says nothing")
        for each in add_known(report, file, reason):
            out.print(f"{file}: {each.target}, {each.clause}", markup=False)


@app.command("badge")
def write_badge(
    report: Annotated[Path, typer.Argument(metavar="REPORT.json", help="What check --json wrote.")],
    file: Annotated[Path, typer.Argument(metavar="BADGE.svg", help="Where the badge goes.")],
) -> None:
    """Draw the verdict as an SVG badge."""
    with cannot_run():
        require_writable(file)
        write_whole(file, badge(read_reports(report)))


@app.command("spec")
def list_clauses(
    glob: Annotated[str, typer.Argument(help="Only clauses whose id matches, as PROC-*.")] = "*",
) -> None:
    """List the clauses."""
    chosen = [clause for clause in spec.clauses().values() if fnmatch.fnmatchcase(clause.id, glob)]
    with cannot_run():
        if not chosen:
            raise CannotRun(f"no clause matches {glob!r}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("clause", "level", "verdict", "title"):
        table.add_column(heading, no_wrap=heading != "title")
    for clause in chosen:
        table.add_row(clause.id, clause.level, clause.verdict, escape(clause.title))
    out.print(table)


@app.command()
def cite(clause: Annotated[str, typer.Argument(help="The clause's id, as UPD-ORDER.")]) -> None:
    """Print a clause ready to paste into a review."""
    with cannot_run():
        try:
            text = spec.cite(clause.upper())
        except KeyError:
            raise CannotRun(f"no clause {clause!r}; `logitsproc spec` lists them") from None
    out.print(text, markup=False, end="")


@app.command()
def drift(
    root: Annotated[Path | None, typer.Option(help="Instead of the installed vLLM, a folder with one.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every upstream place as JSON.")] = None,
) -> None:
    """List the clauses whose upstream source changed: exit 0 none, 1 some to read again, 2 cannot run."""
    with cannot_run():
        require_writable(json_file)
        then, wanted = pinned(), cited()
        now = observe(root or installed_root(), wanted)
        found = compare(wanted, then, now)
        show_drift(found, then, now)
        if json_file is not None:
            write_whole(json_file, json.dumps(drift_json(found, then, now), indent=1) + "\n")
    raise typer.Exit(1 if to_reread(found) else 0)


def show_drift(found: list[Finding], then: Upstream, now: Upstream) -> None:
    """Prints the places to read again, by clause, then what else is not as pinned, and how much there was."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("to re-read", "level", "rests on", "why"):
        table.add_column(heading, overflow="fold")
    for each in found:
        if each.standing == TO_REREAD:
            place, level = each.place, spec.clauses()[each.place.clause].level
            table.add_row(place.clause, level, escape(f"{place.role}: {place.name}".removeprefix(": ")), each.why)
    if table.rows:
        wide(DRIFT_WIDTH).print(table)
    for file, findings in by_file(found, MOVED_ON).items():
        citing = count(len({each.place.clause for each in findings}), "clause")
        out.print(f"{MOVED_ON}: {escape(file)}, but not in what it is cited for by {citing}")
    for file, findings in by_file(found, NOT_COMPARED).items():
        names = ", ".join(each.place.clause for each in findings)
        out.print(f"{NOT_COMPARED}: {escape(file)}, {findings[0].why}: {names}")
    clauses, resting = to_reread(found), count(len({each.place.clause for each in found}), "clause")
    out.print(
        f"[bold {'red' if clauses else 'green'}]{len(clauses)} of {resting} to re-read[/]: "
        f"vLLM {escape(now.version or 'of unknown version')}; the spec rests on {then.version}"
    )


def by_file(found: list[Finding], standing: str) -> dict[str, list[Finding]]:
    """The findings with a standing, by file."""
    files: dict[str, list[Finding]] = {}
    for each in found:
        if each.standing == standing:
            files.setdefault(each.place.file, []).append(each)
    return files


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A history in the notation, or a recording.")],
    target: Annotated[str | None, typer.Argument(help="module:Class to play it to.")] = None,
    kind: Annotated[str | None, typer.Option("--as", help="The field it implements; else the file's `as`.")] = None,
    binding: Annotated[str, typer.Option(help="auto, vllm or plain.")] = AUTO,
    device: Annotated[str, typer.Option(help="Where the logits are, as cuda.")] = "cpu",
) -> None:
    """Check a typed history or a recording against the list law, and play it to a processor."""
    with cannot_run():
        one_of(binding, (AUTO, VLLM, PLAIN), "--binding")
        kind_named(kind)
        data = read_bytes(file)
        recording = to_recording(str(file), data) if is_recording(data) else None
        history = to_history(file, data) if recording is None else recording.history
        if recording is None:
            show_batches(history)
        else:
            show_recording(file, recording)
        if target is None:
            return
        subject = load_subject(target, binding, device)
        failure = (play_history if recording is None else play_recording)(history, subject, kind)
        if failure is None:
            out.print(f"[bold green]{escape(subject.target)}: every row is right[/]")
            return
        out.print(explanation(failure, subject))
    raise typer.Exit(1)


def show_batches(history: History) -> None:
    """Prints the batch after each step."""
    for step, names in enumerate(batches(history)):
        out.print(f"step {step}: {format_drawing(names)}", markup=False)


def show_recording(file: Path, recording: Recording) -> None:
    """Prints what a recording holds; the first clause that its engine breaks ends the process with status 1."""
    if breach := breach_of(file, recording):
        out.print(breach, markup=False)
        raise typer.Exit(1)
    out.print(f"{file}: {summary(recording)}", markup=False)


def breach_of(file: Path, recording: Recording) -> str | None:
    """The first clause that the engine breaks, as a line; says so where the last line of the file was cut off."""
    if recording.cut:
        err.print(f"logitsproc: {file}: the last line was cut off, and is left out", markup=False)
    breach = first_breach(recording.history)
    return breach and "{}: step {} breaks {}: {}".format(file, *breach)


def sound_history(file: Path) -> History:
    """The history of a recording; raises CannotRun where its engine breaks a clause."""
    recording = read_recording(file)
    if breach := breach_of(file, recording):
        raise CannotRun(breach)
    return recording.history


@app.command("usage")
def show_usage(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recordings.")]) -> None:
    """Show what recordings of an engine reach beside what the suite generates."""
    with cannot_run():
        found = usage([sound_history(file) for file in files])
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("", "in steps", "recorded", "reachable", "beyond", "only"):
        table.add_column(heading, justify="right" if heading in SOURCES else "left", no_wrap=True)
    table.add_row("", "", *(f"of {steps:,}" for steps in found.steps))
    for line in found.lines:
        counts = (f"{number:,}" for number in (line.recorded, line.reachable, line.beyond))
        table.add_row(line.group, line.name, *counts, line.only)
    wide(USAGE_WIDTH).print(table)


@app.command("mutants")
def run_mutants(
    only: Annotated[str, typer.Option(help="Only mutants whose name matches, as 'batch.*'.")] = "*",
    seeds: Annotated[int, typer.Option(min=1, help="How many runs of each mutant, with the seeds from 0 on.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many mutants at a time.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all that was found as JSON.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Write the heat map, clauses by mutants (.svg, .png).")] = None,
) -> None:
    """Judge the suite: exit 0 if it kills every mutant under the right clause, 1 if one lives, 2 cannot run."""
    with cannot_run():
        require_writable(json_file)
        require_picture(picture)
        chosen = [mutant for mutant in all_mutants() if fnmatch.fnmatchcase(mutant.name, only)]
        if not chosen:
            raise CannotRun(f"no mutant matches {only!r}")
        told = matrix(chosen, with_progress(fates(chosen, range(seeds), jobs), len(chosen), "mutants"), seeds)
        for table in (mutants_table(told), figures_table(told)):
            wide(MUTANTS_WIDTH).print(table)
        if json_file is not None:
            write_whole(json_file, json.dumps(told, indent=1) + "\n")
        if picture is not None:
            draw(told, picture)
    raise typer.Exit(1 if any(each["outcome"] in (ALIVE, OTHERWISE) for each in told["mutants"]) else 0)


def with_progress(found: Iterator[T], total: int, what: str) -> Iterable[T]:
    """The same, with a progress bar on a terminal."""
    return track(found, what, total, console=err, transient=True, disable=not err.is_terminal)


def wide(width: int) -> Console:
    """The terminal, or, for what reads from a pipe, a console of this width: a table is whole there."""
    return out if out.is_terminal else Terminal(highlight=False, width=width)


def mutants_table(told: dict[str, Any]) -> Table:
    """A line for each mutant."""
    table = Table(box=None)
    for heading in ("mutant", "what is wrong", "outcome", "named", "check", "only", "histories", "events"):
        table.add_column(heading, overflow="fold")
    for each in told["mutants"]:
        named = ", ".join(f"{clause} {times}" for clause, times in each["named"].items())
        histories, events = each["histories"], each["events"]
        table.add_row(
            each["name"],
            escape(each["change"]),
            each["outcome"],
            named,
            ", ".join(each["checks"]),
            "yes" if each["only"] else "",
            f"{histories['median']:g} / {histories['worst']:g}",
            f"{events['median']:g} / {events['shortest']:g}",
        )
    return table


def figures_table(told: dict[str, Any]) -> Table:
    """The counts by origin."""
    table = Table("", "mutants", RIGHT, EQUIVALENT, OTHERWISE, ALIVE, "by one check only", box=None)
    for each in told["figures"]:
        counts = (each[name] for name in ("mutants", RIGHT, EQUIVALENT, OTHERWISE, ALIVE, "only_one_check"))
        table.add_row(each["origin"], *map(str, counts))
    return table


@app.command("prove")
def run_proofs(
    only: Annotated[str, typer.Option(help="Only what has a name that matches, as 'users_*'.")] = "*",
    jobs: Annotated[int, typer.Option(min=1, help="How many at a time.")] = 2,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all results as JSON.")] = None,
) -> None:
    """Prove the lemmas, check the small scopes, examine the executor: exit 0 if all holds, 1 if not, 2 cannot run."""
    with cannot_run():
        require_writable(json_file)
        proofs = room_of_proofs()
        chosen = [name for name in proofs.statements() if fnmatch.fnmatchcase(name, only)]
        if not chosen:
            raise CannotRun(f"nothing that is proved matches {only!r}")
        came = {result.name: result for result in with_progress(proofs.results(chosen, jobs), len(chosen), "proofs")}
        found = [came[name] for name in chosen]
        show_proofs(found)
        if json_file is not None:
            write_whole(json_file, json.dumps([asdict(result) for result in found], indent=1) + "\n")
    raise typer.Exit(1 if any(result.troubles for result in found) else 0)


def room_of_proofs() -> Any:
    """The proofs, which need a solver that nothing else here does; raises CannotRun where it is not installed."""
    try:
        return importlib.import_module(PROOFS)
    except ModuleNotFoundError as error:
        if error.name != "z3":
            raise
        raise CannotRun("prove needs Z3: pip install 'logitsproc[proofs]'") from None


def show_proofs(found: list[Any]) -> None:
    """Prints the table, and below it what is wrong, a line each, and how much there was."""
    wide(PROOFS_WIDTH).print(proofs_table(found))
    for result in found:
        for trouble in result.troubles:
            out.print(f"[bold red]{escape(result.name)}[/]: {escape(trouble)}")
    held = [result for result in found if not result.troubles]
    counts = ", ".join(f"{sum(each.verdict == word for each in held)} {word}" for word in PROOF_WORDS)
    errors = f"{sum(result.refuted for result in found)} of {sum(result.planted for result in found)}"
    out.print(f"{counts}; {errors} planted errors refuted; {len(found) - len(held)} not shown")


PROOF_WORDS = ("proved", "exhaustive", "examined")


def proofs_table(found: list[Any]) -> Table:
    """A line for each statement."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("statement", "clauses", "verdict", "cases", "seconds", "planted errors refuted"):
        table.add_column(heading, justify="right" if heading in ("cases", "seconds") else "left", overflow="fold")
    for result in found:
        style = "red" if result.troubles else "green"
        table.add_row(
            escape(result.name),
            ", ".join(result.clauses),
            f"[{style}]{result.verdict}[/]" + (f" to {escape(result.bound)}" if result.bound else ""),
            f"{result.count:,} {result.unit}",
            f"{result.seconds:.1f}",
            f"{result.refuted} of {result.planted}",
        )
    return table


def main() -> None:
    """The entry point."""
    app()
