"""The spec's own examples, run."""

import doctest
import re

import pytest

from logitsproc import spec
from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.kinds import kind_named
from logitsproc.conformance.notation import parse
from logitsproc.conformance.replaying import check_drawings, check_sights, play_history

OPTIMIZED = {
    "allowed_token_ids": "AllowedTokenIdsLogitsProcessor",
    "bad_words": "BadWordsLogitsProcessor",
    "min_tokens": "MinTokensLogitsProcessor",
    "logit_bias": "LogitBiasLogitsProcessor",
    "repetition_penalty": "RepetitionPenaltyLogitsProcessor",
    "frequency_penalty": "FrequencyPenaltyLogitsProcessor",
    "presence_penalty": "PresencePenaltyLogitsProcessor",
    "temperature": "TemperatureLogitsProcessor",
    "min_p": "MinPLogitsProcessor",
    "top_k": "TopKLogitsProcessor",
    "top_p": "TopPLogitsProcessor",
    "pipeline": "Pipeline",
    "adapter": "AdapterLogitsProcessor",
}
SESSIONS = [
    pytest.param(session, id=f"{clause.id}-{number}")
    for clause in spec.clauses().values()
    for number, session in enumerate(clause.sessions)
]
BLOCKS = [
    pytest.param(block, id=f"{chapter}-{number}")
    for chapter in (*spec.CHAPTERS, "notation")
    for number, block in enumerate(spec.BLOCK.findall(spec.chapter_text(chapter)))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_drawing_and_row_is_what_the_model_gives(block: str) -> None:
    history = parse(block)
    check_drawings(history)
    check_sights(history, kind_named(history.kind))
    assert history.kind is not None or not any(step.sights for step in history.steps)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_fast_path_gives_every_row_that_is_shown(block: str) -> None:
    history = parse(block)
    if history.kind is not None:
        assert play_history(history, load_subject(f"logitsproc.optimized:{OPTIMIZED[history.kind]}"), None) is None


@pytest.mark.parametrize("session", SESSIONS)
def test_every_session_gives_what_it_says(session: str) -> None:
    test = doctest.DocTestParser().get_doctest(session, {}, "session", None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("clause", spec.clauses().values(), ids=lambda clause: clause.id)
def test_every_clause_is_whole(clause: spec.Clause) -> None:
    assert clause.examples or clause.sessions
    assert clause.sentence.endswith(".")
    assert re.search(r"blob `[0-9a-f]{40}`", clause.upstream) or clause.upstream.startswith("none; a ruling")
    assert f'<a id="{clause.id.lower()}"></a>\n### {clause.id}: ' in spec.chapter_text(clause.chapter)


def test_both_worked_examples_are_there() -> None:
    text = spec.chapter_text("batch")
    assert "remove 2; add E@0; move 3->2; swap 0<->1 => [B, E, D]" in text
    assert "add E@2; add F@4; swap 0<->1 => [B, A, E, D, F]" in text


def test_links_between_chapters_lead_somewhere() -> None:
    for chapter in (*spec.CHAPTERS, "notation", "README"):
        for target, anchor in re.findall(r"\]\((?!http)([a-z-]+\.md)(?:#([a-z-]+))?\)", spec.chapter_text(chapter)):
            text = spec.chapter_text(target.removesuffix(".md"))
            assert not anchor or f'<a id="{anchor}"></a>' in text, (chapter, target, anchor)


def test_a_citation_has_level_sentence_and_a_link_that_stays() -> None:
    text = spec.cite("UPD-ORDER")
    assert text.startswith("> **[UPD-ORDER](")
    assert "batch.md#upd-order)** (MUST, processor): " in text


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("\nA sentence.\n\n*Why.* So.\n\n*Upstream.* none\n", "level"),
        ("\n**MUST** · processor\n\nA sentence.\n\n*Upstream.* none\n", "reason"),
        ("\n**MUST** · processor\n\nA sentence.\n\n*Why.* So.\n", "upstream place"),
        ("\n**MUST** · processor\n\nA sentence.\n\n*Why.* So.\n\n*Upstream.* none\n", "verdict"),
        ("\n**MUST** · processor\n\n*Why.* So.\n\n*Upstream.* none\n\n*Verdict.* tested.\n", "sentence"),
    ],
)
def test_a_clause_that_lacks_a_part_is_refused(body: str, part: str) -> None:
    with pytest.raises(spec.SpecError, match=f"UPD-ORDER has no {part}"):
        spec.read_clause("UPD-ORDER", "a title", body, "batch")
