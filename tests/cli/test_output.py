"""Text of others cannot act upon the terminal; what goes into a pipe is not cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bubble.cli.output import Column, note, plain, say, show_table, write_json
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


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, *, width: int) -> io.StringIO:
    """What is written to a terminal of so many characters."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, no_color=True, width=width, color_system=None)
    monkeypatch.setattr("bubble.cli.output.stdout_console", lambda: console)
    return written


@pytest.mark.parametrize("width", [20, 60, 80, 100])
def test_ids_and_roles_are_whole_on_a_terminal_of_any_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    terminal = on_a_terminal(monkeypatch, width=width)
    name = "a name of many words"
    show_table((Column("ID"), "NAME", Column("ROLE")), [("i" * 32, name, "participant")], empty="")
    lines = [line for line in terminal.getvalue().splitlines() if "i" * 32 in line]
    assert len(lines) == 1
    assert "participant" in lines[0]


def test_the_least_important_columns_give_way_and_times_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column("ID"), Column("SINCE", "time"), Column("OWNER", from_width=80), Column("BY", from_width=100))
    headings = {}
    for width in (79, 80, 100):
        terminal = on_a_terminal(monkeypatch, width=width)
        show_table(columns, [("x", "2026-11-30T04:19:24.123Z", "o", None)], empty="")
        assert "2026-11-30 04:19 " in terminal.getvalue().replace("\n", " ")
        headings[width] = terminal.getvalue().split("\n")[1].split()
    least = ["ID", "SINCE", "(UTC)"]
    assert headings == {79: least, 80: [*least, "OWNER"], 100: [*least, "OWNER", "BY"]}


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
