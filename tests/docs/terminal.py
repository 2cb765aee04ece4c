"""A person at a terminal: types one block of a page after the other into the same shell, and leaves some commands running."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Job", "Terminal", "is_shown"]

SECONDS = 60


def is_shown(expected: str, output: str) -> bool:
    """Whether `output` holds the lines of `expected`: `…` stands for anything in a line, a line of `…` alone for any lines."""
    lines = [line.rstrip() for line in expected.strip("\n").splitlines()]
    pattern = "".join("(?:.*\n)*?" if line.strip() == "…" else _line(line) for line in lines)
    given = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
    return re.search(rf"^{pattern}", given, re.MULTILINE) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…")) + "\n"


class Job:
    """A command that stays. Its output is read as it comes."""

    def __init__(self, script: str, pid: int, fifo: Path, more: threading.Condition) -> None:
        self.script = script
        self.pid = pid
        self.output = ""
        self.has_ended = False
        self._more = more
        self._reader = threading.Thread(target=self._read, args=(fifo,), name="job", daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """Ctrl-C, and waits until it and everything that it started are gone. It may have ended before."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGINT)
        self._reader.join(SECONDS)
        assert not self._reader.is_alive(), f"`{self.script.strip()}` did not stop"

    def kill(self) -> None:
        """The end without warning."""
        os.killpg(self.pid, signal.SIGKILL)
        self._reader.join(SECONDS)

    def wait_for(self, expected: str) -> None:
        """Returns once it shows `expected`."""
        with self._more:
            self._more.wait_for(lambda: self.has_ended or is_shown(expected, self.output), SECONDS)
            shown = is_shown(expected, self.output)
        assert shown, f"`{self.script.strip()}` says\n{self.output}\nand not\n{expected}"

    def _read(self, fifo: Path) -> None:
        with fifo.open(encoding="utf-8") as lines:
            for line in lines:
                with self._more:
                    self.output += line
                    self._more.notify_all()
        with self._more:
            self.has_ended = True
            self._more.notify_all()


class Terminal:
    """One shell in `directory`. An error in a command is an AssertionError with what was said."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.directory = directory
        self.jobs: list[Job] = []
        self._more = threading.Condition()
        self._count = 0
        self._answers, answer = os.pipe()
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            cwd=directory,
            env=environment,
            pass_fds=[answer],
            text=True,
            start_new_session=True,
        )
        os.close(answer)
        self._answer = answer
        # Job control: each command that stays gets a process group of its own.
        self._tell("set -m -u -o pipefail")
        # However the shell ends, and be it that this process was killed: nothing that it started goes on.
        self._tell("trap 'for job in $(jobs -p); do kill -9 -- -$job; done 2> /dev/null' EXIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for job in reversed(self.jobs):
                job.stop()
        finally:
            with self._shell:
                assert self._shell.stdin is not None
                self._shell.stdin.close()
            os.close(self._answers)

    def run(self, script: str, *, typed: str = "") -> str:
        """Types the script, and what it asks for. Its output, standard error included."""
        block, given, said = (self._file(kind) for kind in ("sh", "in", "out"))
        block.write_text(f"set -e\n{script}\nset +e\n", encoding="utf-8")
        given.write_text(typed, encoding="utf-8")
        self._tell(f"source {block} < {given} > {said} 2>&1; echo $? >&{self._answer}")
        answer = self._heard()
        output = said.read_text(encoding="utf-8")
        assert answer == "0", f"This failed:\n{script}\n{output}"
        return output

    def start(self, script: str) -> Job:
        """Types a command that stays."""
        block, fifo = self._file("sh"), self._file("fifo")
        block.write_text(script, encoding="utf-8")
        os.mkfifo(fifo)
        self._tell(f"(set -e; source {block}) < /dev/null > {fifo} 2>&1 & echo $! >&{self._answer}")
        job = Job(script, int(self._heard()), fifo, self._more)
        self.jobs.append(job)
        return job

    def stop(self, script: str) -> None:
        """Stops the jobs of this command."""
        for job in [job for job in self.jobs if job.script == script]:
            job.stop()
            self.jobs.remove(job)

    def wait_for(self, expected: str) -> None:
        """Returns once one of the commands that stay shows `expected`."""
        with self._more:
            self._more.wait_for(lambda: self._shows(expected) or all(job.has_ended for job in self.jobs), SECONDS)
            shown = self._shows(expected)
            said = [f"$ {job.script}{job.output}" for job in self.jobs]
        assert shown, "\n".join(["Nothing shows", expected, *said])

    def _shows(self, expected: str) -> bool:
        return any(is_shown(expected, job.output) for job in self.jobs)

    def _file(self, kind: str) -> Path:
        self._count += 1
        folder = self.directory.parent / "typed"
        folder.mkdir(exist_ok=True)
        return folder / f"{self._count}.{kind}"

    def _tell(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{line}\n")
        self._shell.stdin.flush()

    def _heard(self) -> str:
        ready, _, _ = select.select([self._answers], [], [], SECONDS)
        if not ready:
            raise AssertionError("The shell did not answer in time.")
        return os.read(self._answers, 64).decode().strip()
