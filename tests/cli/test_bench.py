"""`bubble bench` measures a server of its own."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


@pytest.mark.slow
def test_every_figure_is_measured_and_told_apart(shell: Shell) -> None:
    figures = shell.json("bench", "--seconds", "0.1")
    assert isinstance(figures, list)
    assert len({each["name"] for each in figures}) == len(figures) == 9
    assert all(each["value"] > 0 for each in figures)
    assert {each["unit"] for each in figures} == {"/s", "ms"}
