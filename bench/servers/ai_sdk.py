"""npm `ai` in a node process: the reducer that ours is to be like, as a reference for its speed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench.servers.process import ServerError
from tests.interop.ai_sdk.oracle import MISSING, PackagesMissing, install

__all__ = ["Original", "original_reducer"]

_SCRIPT = Path(__file__).parent / "ai_sdk.mjs"


class Original:
    """The process, which takes one list of chunks after the other."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions = questions
        self._answers = answers

    def reduce(self, chunks: Sequence[Mapping[str, object]], *, snapshots: int) -> float:
        """The seconds that it takes for the chunks, which must give so many snapshots."""
        self._questions.write(json.dumps(chunks) + "\n")
        self._questions.flush()
        answer = json.loads(self._answers.readline())
        if answer["snapshots"] != snapshots:
            raise ServerError(f"npm ai gave {answer['snapshots']} snapshots instead of {snapshots}.")
        return float(answer["seconds"])


@contextmanager
def original_reducer(directory: Path) -> Iterator[Original | None]:
    """The process; None where node or the packages are not to be had."""
    if not _is_installed(directory):
        yield None
        return
    command = ["node", _SCRIPT.name]
    with subprocess.Popen(
        command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        yield Original(node.stdin, node.stdout)
        node.stdin.close()


def _is_installed(directory: Path) -> bool:
    if MISSING is not None:
        return False
    try:
        install(directory, _SCRIPT)
    except PackagesMissing:
        return False
    return True
