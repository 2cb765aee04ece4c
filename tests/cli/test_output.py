"""Text of others cannot act upon the terminal; what goes into a pipe is not cut."""

from __future__ import annotations

import pytest

from bubble.cli.output import note, plain, say, show_table, write_json
from bubble.protocol.resources import Thread


@pytest.fixture(autouse=True)
def fresh_consoles() -> None:
    """Consoles that write to the streams of this test."""
    from bubble.cli import output

    output._console.cache_clear()


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[2J", "\x9b31m", "a\rb", "\x07", "\u202egnp", "\u2066x\u2069", "\ud83d", "two\nlines", "\x00", "\u2028"],
)
def test_no_character_that_a_terminal_acts_upon_gets_through(hostile: str) -> None:
    shown = plain(hostile)
    assert shown.isprintable()
    assert shown.isascii() or hostile.isprintable()


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    text = "naïve 日本語 العربية 👩‍👩‍👧 🇯🇵 [bold]not markup[/bold]"
    assert plain(text) == text


def test_a_table_in_a_pipe_is_neither_cut_nor_coloured(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("A", "B"), [("x" * 300, "[red]y[/red]\x1b[31m")], empty="nothing")
    out = capsys.readouterr().out
    assert "x" * 300 in out
    assert "[red]y[/red]\\x1b[31m" in out
    assert "\x1b" not in out


def test_an_empty_table_says_so_beside_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("A",), [], empty="Nothing here.")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Nothing here.\n")


def test_json_is_the_wire_form_on_one_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_json([Thread(thread_id="t", join_policy="open", created_at="c", last_activity_at="l", head_seq=3)])
    assert capfdbinary.readouterr().out == (
        b'[{"threadId":"t","joinPolicy":"open","createdAt":"c","lastActivityAt":"l","headSeq":3}]\n'
    )


def test_results_and_remarks_go_to_different_streams(capsys: pytest.CaptureFixture[str]) -> None:
    say("result")
    note("remark")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("result\n", "remark\n")
