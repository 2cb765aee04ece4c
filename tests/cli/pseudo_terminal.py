"""A terminal for the real command: what stands on its screen, and what has scrolled away above."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import TIMEOUT

__all__ = ["PseudoTerminal", "terminal_of"]

# A control sequence, a control character, or text.
_TOKEN = re.compile(
    r"\x1b\[(?P<parameters>[0-9;?]*)(?P<letter>[A-Za-z])|(?P<control>[\x00-\x1f\x7f])|(?P<text>[^\x00-\x1f\x7f]+)"
)
_ROWS = 24
_COLUMNS = 72


class _Lines:
    """Lines that are written, and written over. It knows just the sequences that the command may use: others are an error."""

    def __init__(self, columns: int) -> None:
        self.lines = [""]
        self._columns = columns
        self._row = self._column = 0

    def write(self, text: str) -> None:
        """Does what a terminal does."""
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found is not None, f"not for a terminal: {text[at : at + 20]!r}"
            at = found.end()
            if found["text"]:
                self._put(found["text"])
            elif found["control"]:
                self._control(found["control"])
            else:
                self._sequence(found["letter"], found["parameters"])

    def _put(self, text: str) -> None:
        line = self.lines[self._row].ljust(self._column)
        self.lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)
        assert self._column <= self._columns, "a line was left to the terminal to break"

    def _control(self, character: str) -> None:
        assert character in "\r\n", f"{character!r} was written"
        if character == "\r":
            self._column = 0
            return
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")

    def _sequence(self, letter: str, parameters: str) -> None:
        if letter == "A":
            self._row -= int(parameters or 1)
            assert self._row >= max(0, len(self.lines) - _ROWS), "something was changed that has scrolled away"
        elif (letter, parameters) == ("K", "2"):
            self.lines[self._row] = ""
        else:
            assert letter == "m" or parameters == "?25", f"ESC [ {parameters}{letter} was written"


class PseudoTerminal:
    """A command's terminal. What it shows is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int, *, columns: int) -> None:
        self.process = process
        self.has_ended = False
        self.failure: BaseException | None = None
        self._descriptor = descriptor
        self._written = _Lines(columns)
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    @property
    def lines(self) -> list[str]:
        """Everything that stands there now, from the first line to the last, without spaces behind."""
        return [line.rstrip() for line in self._written.lines]

    def wait_for(self, holds: Callable[[list[str]], bool]) -> list[str]:
        """The lines, as soon as they are as is to be."""
        with self._more:
            self._more.wait_for(lambda: self.has_ended or holds(self.lines), TIMEOUT)
            if self.failure is not None:
                raise self.failure
            assert holds(self.lines), "\n".join(self.lines)
            return self.lines

    def interrupt(self) -> list[str]:
        """Ctrl-C; what stands there when the command has ended."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        if self.failure is not None:
            raise self.failure
        return self.lines

    def _read(self) -> None:
        decode = _decoder()
        try:
            while data := _chunk(self._descriptor):
                with self._more:
                    self._written.write(decode(data))
                    self._more.notify_all()
        except BaseException as error:  # noqa: BLE001 - raised where somebody waits
            self.failure = error
        with self._more:
            self.has_ended = True
            self._more.notify_all()


def _chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # how Linux says that nobody holds the other side any more
        return b""


def _decoder() -> Callable[[bytes], str]:
    rest = b""

    def decode(data: bytes) -> str:
        # Only whole characters and whole sequences are passed on.
        nonlocal rest
        data = rest + data
        end = len(data)
        if (escape := data.rfind(b"\x1b")) >= 0 and not re.match(rb"\x1b\[[0-9;?]*[A-Za-z]", data[escape:]):
            end = escape
        while not _is_whole(data[:end]):
            end -= 1
        rest = data[end:]
        return data[:end].decode("utf-8")

    return decode


def _is_whole(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def terminal_of(
    command: Sequence[str], *, directory: Path, environment: dict[str, str], columns: int = _COLUMNS
) -> Iterator[PseudoTerminal]:
    """Runs the command on a terminal of 24 lines. It does not outlive the block."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    sized = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, ours)
        process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env={**sized, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        stack.enter_context(process)
        stack.callback(process.kill)
        yield PseudoTerminal(process, ours, columns=columns)
