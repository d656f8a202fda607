"""What a failure says, in four parts: cause and effect in words, a picture, the clause, and a script."""

from __future__ import annotations

from rich.text import Text

from logitsproc.conformance.bindings import Subject
from logitsproc.conformance.excuses import Excuse
from logitsproc.conformance.notation import format_history, format_number
from logitsproc.conformance.picture import Mark, in_text
from logitsproc.conformance.prose import same_values, story
from logitsproc.conformance.script import as_script
from logitsproc.conformance.suite import STALE, ClauseResult, Failure, Report
from logitsproc.reference.expectation import Expectation, refused

SHOWN_TOKENS = 8
REMEDIES = {
    "PROC-STATE-DEPARTED": "Clear the row's state on every add, also when the new request does not use the processor.",
    "UPD-REMOVE": "Drop the state of exactly the rows in `removed`; leave every other row where it is.",
    "UPD-ADD": "Store an added request under the row in its tuple, not behind the last one.",
    "UPD-REPLACE": "Overwrite what the row held before when a request is added at it.",
    "UPD-EXTEND": "Accept an added row one past the end.",
    "UPD-MOVE": "On UNIDIRECTIONAL take the state from the source, put it at the destination, and clear the source.",
    "UPD-DROP": "On UNIDIRECTIONAL clear the destination first, also when the source has no state.",
    "UPD-SWAP": "On SWAP pop both states before storing either, so that a side without state clears the other.",
    "UPD-ORDER": "Process removed, then added, then moved.",
    "UPD-SEQUENCE": "Process the moves one after the other in the order listed, each on the result of the one before.",
    "UPD-NONE": "On None keep every row's state as it is.",
    "UPD-SIZE": "Use batch_size only after all moves have been followed.",
    "UPD-OVERLAP": "Process removed before added.",
    "PROC-INDEPENDENT": "Keep params by row, not in one attribute of the processor.",
    "PROC-LIVE-OUTPUTS": "Keep a reference to the output list that comes with `added`; do not copy it.",
    "PROC-PLACEHOLDER": "Read output ids in apply, not in update_state.",
    "PROC-QUIET": "Look at the output lists also when update_state gets None.",
    "PROC-FUNCTION": "Compute the row from params, prompt and outputs as they are now, not from what was counted.",
    "PROC-APPLY-STATELESS": "Keep progress in the output lists, not in a counter that apply moves on.",
    "PROC-UNTOUCHED": "Write only to the rows of requests that use the processor.",
    "PROC-ARGMAX": "Return False from is_argmax_invariant().",
    "PROC-SHAPE": "Return the tensor you were given, or one of the same shape, dtype and device.",
    "PROC-READONLY": "Copy what you want to change; the update's lists are shared with the next processor.",
    "PIPE-ORDER": "Run the stages in the order of the clause, each on what the one before it returned.",
    "PIPE-EACH": "Ask for every stage whether any row uses it, and apply it to exactly those rows.",
    "PIPE-GREEDY": "Leave the rows of greedy requests out of temperature, min-p, top-k and top-p.",
    "PIPE-SKIP": "Skip the argmax-invariant processors if every request is greedy, and in no other case.",
    "PIPE-RETURNED": "Go on with the tensor that apply returned.",
    "PIPE-FLOAT": "Convert the logits to float32 before the first stage.",
    "EMPTY-ROW": "Leave a row that is all -inf as it is.",
    "ALLOW-FILL": "Fill what is not listed with -inf; adding -inf makes NaN of +inf and NaN.",
    "BAD-COMPLETE": "Compare the last n-1 outputs with the first n-1 tokens of the word, at every apply.",
    "REP-SEEN": "Penalise the tokens of the prompt as well as those of the output, and no others.",
    "TOPK-TIES": "Mask what is less than the k-th largest logit, not what sorts behind it.",
    "TOPP-ONE": "Keep the first token of the descending order whatever p is.",
    "TOPP-PREFIX": "Keep a token if the mass of those before it, without its own, is less than p.",
    "LOAD-REFUSE": "Raise at start for what cannot be loaded; leave nothing out in silence.",
    "LOAD-INVARIANT": "Ask is_argmax_invariant() once, when the processor is built, and keep the answer.",
    "LOAD-ROW": "Store the row that the request-level processor returns.",
    "VAL-ERROR": "Look at the type first, and raise ValueError.",
    "VAL-PURE": "Make validate_params a class method that only looks.",
    "PROD-RANGE": "Give each row as it is when the operation is reached: after removals, adds, and earlier moves.",
    "PROD-DISJOINT": "Take a vacated row out of `removed` when a request is added at it.",
    "PROD-CONTIGUOUS": "Condense before the update is made, and cut off the holes at the end.",
    "PROD-SIZE": "Take batch_size after the batch is condensed.",
    "PROD-NONE": "Make an update for every step that removes, adds or moves, also when it only reorders.",
    "PROD-REPLAY": "Record every change where it is made: the move when rows are condensed, the swap when they swap.",
    "PROD-ROWS": "Keep in the rows whoever is scheduled, by id and list; an id may come back for another request.",
    "PROD-PARAMS": "Hand over the params and the prompt of the very request that is added.",
    "PROD-LIVE": "Hand over the list that tokens are appended to, not a copy of it, and add again who gets another.",
    "PROD-UNCHANGED": "Start new lists for the next update instead of clearing the old ones.",
    "PROD-ELIDE": "List in `removed` every vacated row that no add and no one-way move filled.",
    "PROC-SHRINK": "Decide by the length of the list as it is, and do not forget a request that was served once.",
}


def explain(failure: Failure, subject: Subject) -> str:
    """The whole explanation of a failure as plain text."""
    return explanation(failure, subject).plain


def explanation(failure: Failure, subject: Subject) -> Text:
    """The whole explanation of a failure, its picture in colours."""
    clause = failure.clause
    parts = [Text(f"{subject.target} breaks {clause.id}: {clause.title}"), Text(cause(failure))]
    if failure.history.steps:
        parts.append(indented_text(in_text(failure.history, mark(failure))))
        steps = count(len(failure.history.steps), "step")
        whose = "What it emitted, with its own rows and what it was asked, " if failure.asked else "The history, "
        parts.append(Text(f"{whose}{steps}:\n\n{indented(format_history(failure.history, failure.asked))}"))
    if (rows := row_text(failure)) is not None:
        parts.append(Text(rows))
    parts.append(Text(f"{clause.id} ({clause.level}): {clause.sentence}\n{clause.link}"))
    if clause.id in REMEDIES:
        parts.append(Text(f"To fix: {REMEDIES[clause.id]}"))
    parts.append(Text(f"As a script:\n\n{indented(script_of(failure, subject))}"))
    return Text("\n\n").join(parts)


def mark(failure: Failure) -> Mark:
    """What a picture of the history marks."""
    return failure.violation.step, failure.violation.row


def script_of(failure: Failure, subject: Subject) -> str:
    """The script that shows the failure."""
    return "\n".join(failure.script) if failure.script else as_script(failure.history, subject)


def cause(failure: Failure) -> str:
    """Cause and effect in words, and which fault would explain it."""
    violation = failure.violation
    if not failure.history.steps:
        return f"{violation.message}."
    told = story(failure.history, violation, failure.carries)
    text = f"Step {violation.step}: {violation.message}." + (f" {told}" if told else "")
    if failure.fault:
        text += f" It behaves like a processor with this fault: {failure.fault}"
    if not failure.reproduced:
        text += " Played again alone, the history does not fail: chance, or what another processor did, shows in it."
    return text


def row_text(failure: Failure) -> str | None:
    """The tokens of the row that are wrong: what went in, what it may be, what came out."""
    violation = failure.violation
    if violation.expectation is None or violation.got is None:
        return None
    wrong = refused(violation.expectation, violation.got)
    wrong = wrong or [t for t, value in enumerate(violation.got) if not same_values([value], [violation.logits[t]])]
    lines = [
        f"Row {violation.row}, {count(len(wrong), 'token')} wrong:",
        "",
        "  token    logit in    expected         got",
    ]
    for token in wrong[:SHOWN_TOKENS]:
        expected = allowed(violation.expectation, token)
        went_in, came_out = format_number(violation.logits[token]), format_number(violation.got[token])
        lines.append(f"  {token:>5}  {went_in:>10}  {expected:>10}  {came_out:>10}")
    if len(wrong) > SHOWN_TOKENS:
        lines.append(f"  and {len(wrong) - SHOWN_TOKENS} more")
    return "\n".join(lines)


def allowed(expectation: Expectation, token: int) -> str:
    """A value, an interval, or `x or -inf`."""
    low, high = expectation.low[token], expectation.high[token]
    text = format_number(low) if low == high or low != low else f"{format_number(low)}..{format_number(high)}"
    return f"{text} or -inf" if token in expectation.either else text


def indented_text(text: Text) -> Text:
    """Four spaces before every line."""
    return Text("\n").join(Text("    ").append_text(line) for line in text.split("\n"))


def indented(text: str) -> str:
    """Four spaces before every line."""
    return "\n".join(f"    {line}".rstrip() for line in text.rstrip().splitlines())


def count(number: int, thing: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {thing}" if number == 1 else f"{number:,} {thing}s"


def in_question(report: Report) -> list[ClauseResult]:
    """The results that are shown: of the clauses that are not another transformation's."""
    return [result for result in report.results if result.note != "another transformation"]


def verdict_line(report: Report) -> str:
    """The verdict in one sentence."""
    target = report.settings.subject.target
    if report.failure is not None:
        return f"{target}: violation of {report.failure.clause.id}"
    if report.settings.glob != "*":
        target += f", {report.settings.glob} only"
    if report.verdict == STALE:
        stale = ", ".join(excuse.known.clause for excuse in report.known if excuse.stale)
        return f"{target}: {STALE}: {stale}"
    if report.verdict == "unproven":
        missing = [result.clause.id for result in report.results if result.status == "unproven"]
        if not missing:
            return f"{target}: unproven, no MUST was judged"
        return f"{target}: unproven, {count(len(missing), 'clause')} without a witness: {', '.join(missing)}"
    known = ", ".join(excuse.known.clause for excuse in report.known)
    return f"{target}: conformant on {report.scope}" + (f" but for known failures: {known}" if known else "")


def excuse_line(excuse: Excuse) -> str:
    """A failure that is known, in one line."""
    known = excuse.known
    if excuse.stale:
        return f"stale: {known.clause}, {known.reason}: {excuse.stale}, so take the entry out"
    return f"known: {known.clause}, {known.reason}"


def evidence_line(report: Report) -> str:
    """How much was played."""
    evidence = report.evidence
    histories = f"{evidence.histories:,} {'history' if evidence.histories == 1 else 'histories'}"
    text = (
        f"{histories} ({evidence.observed:,} observed for witnesses), {count(evidence.steps, 'step')}; "
        f"judged by {report.oracle}"
    )
    if report.drawn:
        text += f"; {report.users} of {report.drawn} params use the processor"
    if report.note:
        text += f"; {report.note}"
    if report.refused:
        text += f"; validate_params refused {report.refused}"
    return text + ("; stopped early, time was up" if report.stopped_early else "")
