"""The embedded durable store: one SQLite file, one server process.

`writer` is the only place that changes the file: it takes what is queued (`appends`, `changes`) as one `group`, commits it and tells.
`readers` answer beside it. `upkeep` does what can wait: it settles the `activity`, runs `checkpoints`, erases deleted threads.
`store` is the contract; `threads`, `grants`, `runs`, `principals`, `credentials` are its areas.
"""

from __future__ import annotations

from bubble.store.sqlite.backup import backup_file
from bubble.store.sqlite.checking import check_file
from bubble.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "backup_file", "check_file"]
