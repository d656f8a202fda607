"""`pytest --logits-processor pkg.mod:Class`, or `--update-producer`, collects one test a clause."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TARGETS = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options: whom to judge, as what, how long, with which params."""
    group = parser.getgroup("logitsproc", "conformance of batch-level logits processors")
    group.addoption("--logits-processor", action="append", default=[], metavar="MODULE:CLASS", help="judge this class")
    group.addoption(
        "--update-producer", action="append", default=[], metavar="MODULE:CLASS", help="judge this producer"
    )
    group.addoption("--lp-as", metavar="KIND", help="the SamplingParams field that it implements")
    group.addoption("--lp-tier", default="quick", metavar="TIER", help="quick, ci or deep")
    group.addoption("--lp-device", default="cpu", metavar="DEVICE", help="where the logits are, as cuda")
    group.addoption("--lp-params", metavar="FILE", help="JSON list of SamplingParams fields to draw from")
    group.addoption("--lp-known", metavar="FILE", help="TOML file of failures that are excused")


def pytest_configure(config: pytest.Config) -> None:
    """Loads the subjects at once, so that a bad option or target is one line and exit status 4."""
    processors, producers = config.getoption("--logits-processor"), config.getoption("--update-producer")
    if processors or producers:
        makers = [(target, processor_job) for target in processors] + [(target, producer_job) for target in producers]
        config.stash[TARGETS] = {target: prepared(config, target, make) for target, make in makers}


class Job(NamedTuple):
    """A subject to be judged: how, and for which clauses."""

    settings: Any
    runs: Callable[[Any], Any]
    clauses: list[Any]


def prepared(config: pytest.Config, target: str, make: Callable[[pytest.Config, str, str], Job]) -> Job:
    """What is to be run for a target; raises UsageError."""
    from logitsproc.conformance.bindings import CannotRun
    from logitsproc.conformance.suite import TIERS

    tier = config.getoption("--lp-tier")
    try:
        if tier not in TIERS:
            raise CannotRun(f"--lp-tier {tier}: there are {', '.join(TIERS)}")
        return make(config, target, tier)
    except CannotRun as error:
        raise pytest.UsageError(f"logitsproc: {error}") from None


def processor_job(config: pytest.Config, target: str, tier: str) -> Job:
    """A logits processor, as --lp-as, --lp-params and --lp-known say; raises CannotRun."""
    from logitsproc.conformance.bindings import load_subject
    from logitsproc.conformance.kinds import kind_named
    from logitsproc.conformance.known import known_of, read_known
    from logitsproc.conformance.params import read_params
    from logitsproc.conformance.suite import Settings, owed, run, speaks_of

    kind, params = kind_named(config.getoption("--lp-as")), config.getoption("--lp-params")
    pool = read_params(Path(params)) if params else None
    subject = load_subject(target, device=config.getoption("--lp-device"))
    file = config.getoption("--lp-known")
    known = known_of(read_known(Path(file)), subject, kind) if file else ()
    settings = Settings(subject, kind, params=pool, tier=tier, known=known)
    return Job(settings, run, [clause for clause in owed(kind) if speaks_of(clause, kind)])


def producer_job(config: pytest.Config, target: str, tier: str) -> Job:
    """A producer; raises CannotRun."""
    from logitsproc.conformance.producers.suite import load_producer, owed, run_producer
    from logitsproc.conformance.suite import Settings

    return Job(Settings(load_producer(target), tier=tier), run_producer, owed())


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Adds the clauses of every subject to what was collected."""
    for target, job in config.stash.get(TARGETS, {}).items():
        collector = SubjectCollector.from_parent(session, name=target, nodeid=target)
        collector.job = job
        items.extend(collector.collect())
    session.testscollected = len(items)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> str | None:
    """Says how many clauses there are, which pytest's own count leaves out."""
    clauses = [item for item in items if isinstance(item, ClauseItem)]
    return f"logitsproc: {len(clauses)} clauses to judge" if clauses else None


class SubjectCollector(pytest.Collector):
    """The clauses that a subject owes; the run is made once, by the first that needs it."""

    job: Job
    found: Any = None

    def collect(self) -> Iterable[ClauseItem]:
        """One item a clause in scope."""
        for clause in self.job.clauses:
            yield ClauseItem.from_parent(self, name=clause.id)

    def report(self) -> Any:
        """The report of the run; raises CannotRun, without another run, when the first could not be made."""
        from logitsproc.conformance.bindings import CannotRun

        if self.found is None:
            try:
                self.found = self.job.runs(self.job.settings)
            except CannotRun as error:
                self.found = error
        if isinstance(self.found, CannotRun):
            raise self.found
        return self.found


class ClauseItem(pytest.Item):
    """One clause of one subject."""

    def runtest(self) -> None:
        """Passes when the clause held with a witness; fails when it is broken, unproven or stale; is expected to fail
        when it is known; else is skipped."""
        assert isinstance(self.parent, SubjectCollector)
        report = self.parent.report()
        result = next(result for result in report.results if result.clause.id == self.name)
        if result.status == "broken":
            raise ClauseFailed(report, None)
        if result.status == "unproven":
            raise ClauseFailed(report, f"{self.name} is unproven: no step of the run was a witness of it")
        if result.status == "stale":
            raise ClauseFailed(report, f"{self.name} was known to be broken, and {result.note}: take the entry out")
        if result.status == "known":
            pytest.xfail(result.note)
        if result.status != "held":
            pytest.skip(f"{result.status}: {result.note}" if result.note else result.status)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The explanation, without a traceback."""
        from logitsproc.conformance.bindings import CannotRun

        if isinstance(excinfo.value, ClauseFailed | CannotRun):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[str, None, str]:
        """Where the item stands in a report."""
        assert self.parent is not None
        return self.parent.name, None, f"{self.parent.name} {self.name}"


class ClauseFailed(Exception):
    """A clause is broken or unproven; the text is the explanation."""

    def __init__(self, report: Any, text: str | None) -> None:
        from logitsproc.conformance.explanation import explain

        super().__init__(text or explain(report.failure, report.settings.subject))
