"""No statement walks through a table that grows: the cost of a question depends on its answer, not on what else is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import apsw
import pytest

from bubble.protocol.timestamps import system_clock
from bubble.store.sqlite.connection import open_connection, query
from bubble.store.sqlite.migrations import bring_up_to_date

NAMES = sorted(
    file.name.removesuffix(".sql")
    for file in resources.files("bubble.store.sqlite").joinpath("queries").iterdir()
    if file.name.endswith(".sql")
)
# What may be walked through: the check looks at everything; open runs are few, and they have an index of their own.
WALKED = {
    "count_stray_threads": {"events", "threads", "doomed_threads"},
    "lost_runs": {"runs"},
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    db = open_connection(tmp_path / "bubble.db")
    bring_up_to_date(db, tmp_path, migrate=True, clock=system_clock)
    yield db
    db.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_searches_what_it_needs(db: apsw.Connection, name: str) -> None:
    tables = {str(table) for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    parameters = max((int(number) for number in re.findall(r"\?(\d+)", query(name))), default=0)
    plan = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {query(name)}", [None] * parameters)]
    walked = {step.split()[1] for step in plan if step.startswith("SCAN ")} & tables
    assert walked <= WALKED.get(name, set()), plan
