"""What was acknowledged, kept outside of the server where no crash of it reaches."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["Ledger"]


class Ledger:
    """Appends `(seq, text)` of every acknowledgement to a file, synced before the next one may be asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a", encoding="utf-8")

    def acknowledge(self, seq: int, text: str) -> None:
        """Notes one acknowledgement, durably."""
        self._file.write(f"{seq} {text}\n")
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def read(self) -> dict[int, str]:
        """Text by seq. Two acknowledgements of one seq for different texts would be a loss, so they fail here."""
        entries: dict[int, str] = {}
        for line in self._path.read_text(encoding="utf-8").splitlines():
            seq, _, text = line.partition(" ")
            assert entries.setdefault(int(seq), text) == text, f"seq {seq} was acknowledged twice"
        return entries

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
