"""Pictures of histories, in characters and as SVG, and what is told of them in words."""

import xml.etree.ElementTree as ElementTree

import pytest
from rich.console import Console

from logitsproc.conformance.notation import parse
from logitsproc.conformance.picture import COLOURS, SHOWN_ROWS, SHOWN_STEPS, in_text, picture
from logitsproc.conformance.timeline import timeline

SVG = "{http://www.w3.org/2000/svg}"
BUSY = parse(
    """
    vocab 4
    as min_p
    A: min_p=0.5
    C: min_p=0.25

    [A, B, C]
    remove 0; add D@3 => [x, B, C, D]
    move 3->0; swap 0<->1 => [B, D, C]
    quiet
    remove 1; move 2->1 => [B, C]
    """
)


def drawn(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_a_picture_in_characters_says_who_stands_where_and_how_they_came() -> None:
    assert in_text(BUSY, (2, 1)).plain.splitlines() == [
        "        step 0   step 1   step 2   step 3   step 4",
        "row 0      +A    .          B<-1      B        B",
        "row 1      +B       B      !D<-3!     D       C<-2",
        "row 2      +C       C        C        C",
        "row 3               +D",
    ]


def test_each_request_has_a_colour_where_the_terminal_has_some() -> None:
    styles = " ".join(str(span.style) for span in in_text(BUSY).spans)
    assert [colour in styles for colour in COLOURS] == [True] * 4 + [False] * 4
    console = Console(force_terminal=True, color_system="truecolor", no_color=False, width=100)
    with console.capture() as captured:
        console.print(in_text(BUSY))
    assert "\x1b[" in captured.get()


def test_an_svg_has_a_bar_for_each_request_in_each_step_an_arrow_for_each_move_and_a_mark() -> None:
    root = drawn(picture(BUSY, (2, 1)))
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "name"]
    assert sorted(names) == sorted("ABCBCDBDCBDCBC")
    assert len([path for path in root.iter(f"{SVG}path") if str(path.get("d")).endswith("Z")]) == 1 + 2 + 1
    assert [title.text for title in root.iter(f"{SVG}title")] == ["A is gone", "D is gone"]
    assert len([rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "wrong"]) == 1
    assert root.get("role") == "img"
    assert "step 2: move 3->0; swap 0<->1" in str(root.get("aria-label"))


def test_a_mark_stands_at_the_row_and_the_step() -> None:
    marked = {
        (step, row): [
            rect.get("y") for rect in drawn(picture(BUSY, (step, row))).iter() if rect.get("class") == "wrong"
        ]
        for step, row in ((2, 1), (3, 1), (2, 0))
    }
    assert marked[2, 1] == marked[3, 1] != marked[2, 0]
    assert 'wrong"' not in picture(BUSY)


def test_a_long_history_shows_its_end_and_the_rows_about_the_one_that_is_wrong() -> None:
    adds = "\n".join(f"add R{row}@{row}" for row in range(60))
    history = parse(f"vocab 4\n\n{adds}")
    root = drawn(picture(history, (59, 40)))
    labels = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "label"]
    assert [label for label in labels if str(label).startswith("step")] == [
        f"step {n}" for n in range(60 - SHOWN_STEPS, 60)
    ]
    assert len([label for label in labels if str(label).startswith("row")]) == SHOWN_ROWS
    assert "row 40" in labels
    assert len([rect for rect in root.iter() if rect.get("class") == "wrong"]) == 1


def test_the_legend_is_whole_and_a_long_list_is_cut_off() -> None:
    tokens = list(range(200))
    root = drawn(
        picture(parse(f"vocab 300\nA: allowed_token_ids={tokens}\nB: min_tokens=3, stop_token_ids=[1, 2]\n\n[A, B]"))
    )
    texts = [str(text.text) for text in root.iter(f"{SVG}text")]
    assert "B: min_tokens=3, stop_token_ids=[1, 2]" in texts
    (long,) = [text for text in texts if text.startswith("A: ")]
    assert (len(long), long[-3:]) == (100, "...")
    assert float(str(root.get("width"))) >= 30 + 8 * len(long)


def test_names_are_escaped() -> None:
    history = parse("vocab 4\nA: extra_args={'text': '</svg><script>&'}\n\nadd A@0")
    svg = picture(history)
    assert "<script" not in svg
    drawn(svg)


def test_a_history_in_which_nobody_comes_is_drawn() -> None:
    root = drawn(picture(parse("vocab 4\n\nquiet")))
    assert [text.text for text in root.iter(f"{SVG}text")] == ["step 0"]
    assert in_text(parse("vocab 4\n\nquiet")).plain.split() == ["step", "0"]


@pytest.mark.parametrize("steps", ["", "move 1->0"])
def test_what_has_no_step_that_can_be_played_has_no_picture(steps: str) -> None:
    assert picture(parse(f"vocab 4\n\n{steps}")) == ""
    assert timeline(parse(f"vocab 4\n\n{steps}")) == []
