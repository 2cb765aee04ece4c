"""What a connector's process writes."""

from __future__ import annotations

import logging

import pytest

from bubble.amphibian.launcher import OneLine


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("t", "WARNING Task t is gone."),
        ("t\nERROR All is lost", "WARNING Task t\\nERROR All is lost is gone."),
        ("\x1b[2J\x9b1m\r\t", "WARNING Task \\x1b[2J\\x9b1m\\r\\t is gone."),
        ("\u202egnp", "WARNING Task \\u202egnp is gone."),
        ("Müller 🙂", "WARNING Task Müller 🙂 is gone."),
    ],
)
def test_what_others_say_makes_no_lines_of_its_own_in_the_log(said: str, shown: str) -> None:
    record = logging.LogRecord("bubble", logging.WARNING, "", 0, "Task %s is gone.", (said,), None)
    assert OneLine("%(levelname)s %(message)s").format(record) == shown
