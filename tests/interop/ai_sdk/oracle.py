"""npm `ai`, unmodified, in one node process that answers questions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["MISSING", "Oracle", "PackagesMissing", "install", "running_oracle"]

HERE = Path(__file__).parent
MISSING = next((part for part in ("node", "npm") if shutil.which(part) is None), None)
SECONDS = 240


class PackagesMissing(Exception):
    """The packages of the lock file cannot be had here."""


def install(directory: Path, script: Path) -> None:
    """Puts the packages of the lock file into `directory`, and `script`, which uses them."""
    for file in (HERE / "package.json", HERE / "package-lock.json", script):
        shutil.copy(file, directory)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"]
    try:
        subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise PackagesMissing(str(error)) from error


class Oracle:
    """The process. A question and its answer are a line each."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions = questions
        self._answers = answers

    def fold(self, chunks: Sequence[object], message: object = None) -> dict[str, Any]:
        """`snapshots`: pairs of the index of a chunk and the message after it; `errors`, with the index of their chunk."""
        answer: dict[str, Any] = self._ask({"chunks": chunks} | ({} if message is None else {"message": message}))
        return answer

    def parse(self, texts: list[str]) -> list[dict[str, Any]]:
        """`parsePartialJson` of each: `state`, and `value` where there is one."""
        answer: list[dict[str, Any]] = self._ask({"texts": texts})
        return answer

    def are_valid(self, chunks: Sequence[object]) -> list[bool]:
        """Whether each has the shape of a chunk."""
        answer: list[bool] = self._ask({"shapes": chunks})
        return answer

    def _ask(self, question: object) -> Any:  # noqa: ANN401 - of many shapes
        self._questions.write(json.dumps(question) + "\n")
        self._questions.flush()
        return json.loads(self._answers.readline())


@contextmanager
def running_oracle(directory: Path) -> Iterator[Oracle]:
    """The process, with what it needs in `directory`. Raises `PackagesMissing`."""
    install(directory, HERE / "oracle.mjs")
    command = ["node", "oracle.mjs"]
    with subprocess.Popen(
        command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Oracle(process.stdin, process.stdout)
        process.stdin.close()
