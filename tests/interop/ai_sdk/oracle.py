"""npm `ai`, unmodified, in one node process that answers questions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["MISSING", "Oracle", "install", "running_oracle"]

HERE = Path(__file__).parent
MISSING = next((part for part in ("node", "npm") if shutil.which(part) is None), None)
SECONDS = 240


def install(directory: Path) -> None:
    """Puts the packages of the lock file, and the script, into `directory`."""
    for name in ("package.json", "package-lock.json", "oracle.mjs"):
        shutil.copy(HERE / name, directory)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", str(directory / "cache")]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=SECONDS)


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
    """The process in a directory that `install` has prepared."""
    command = ["node", "oracle.mjs"]
    with subprocess.Popen(
        command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Oracle(process.stdin, process.stdout)
        process.stdin.close()
