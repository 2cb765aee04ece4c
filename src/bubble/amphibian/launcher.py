"""From a configuration to a running connector, and from a signal to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Final

from bubble.amphibian.agents import Agent
from bubble.amphibian.config import ConfigError, read_config
from bubble.amphibian.connector import Connector
from bubble.amphibian.contact import Contact
from bubble.amphibian.options import ConnectorConfig
from bubble.amphibian.store import MEMORY, AmphibianStore
from bubble.client import BubbleConnection
from bubble.client.supervision import beside
from bubble.protocol.errors import BubbleError, Unauthenticated

__all__ = ["OneLine", "default_store_path", "host", "launch", "log_to_stderr", "run_until_signalled", "store_path"]

_FIRST_SECONDS: Final = 5.0
_LAST_SECONDS: Final = 9.8
_LOOSE_ENDS_SECONDS: Final = 1.0
_FAILED: Final = 1
# Controls, and what turns the direction of writing.
_UNFIT: Final = (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: Final = {code: ascii(chr(code))[1:-1] for code in _UNFIT}


def default_store_path(name: str) -> Path:
    """Where the connector `name` keeps its store if it is not told otherwise. `ConfigError` for who has no home."""
    try:
        return Path.home() / ".bubble" / name / "db.sqlite"
    except RuntimeError:
        raise ConfigError("`store.path` is missing: there is no home directory to keep the store in.") from None


async def launch(
    config: ConnectorConfig,
    agent: Agent,
    *,
    name: str,
    stop: asyncio.Event,
    max_bot_turns: int = 8,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Lets `agent` take part as the configuration says, until `stop` is set. `on_ready` is called when it knows its threads.

    Whether the server is in reach is said in the log, when that changes. Raises `BubbleError`: where the store cannot be used or another
    connector has it, the server stays out of reach, or the token is refused or another principal's.
    """
    url, token = config.bubble.url, config.bubble.token.get_secret_value()
    contact = Contact(url)

    def ready() -> None:
        contact.is_there()
        on_ready()

    async with (
        await AmphibianStore.open(store_path(config, name)) as store,
        beside(contact.try_once(BubbleConnection(url, token=token, retry_for=0, timeout=_FIRST_SECONDS))),
        BubbleConnection(url, token=token, on_outage=contact.changed) as bubble,
    ):
        connector = Connector(
            agent,
            bubble=bubble,
            principal_id=config.bubble.principal_id,
            store=store,
            policy=config.backlog.policy(),
            max_bot_turns=max_bot_turns,
        )
        try:
            await connector.run(stop=stop, on_ready=ready)
        except Unauthenticated as error:
            raise Unauthenticated(f"{url} does not take `bubble.token`. {error.message}") from None


def store_path(config: ConnectorConfig, name: str) -> str:
    """Where the connector `name` keeps its store, or `:memory:`."""
    if config.store.path == MEMORY:
        return MEMORY
    return str(Path(config.store.path).expanduser() if config.store.path else default_store_path(name))


def run_until_signalled(work: Callable[[asyncio.Event], Coroutine[object, object, None]]) -> None:
    """Runs `work` in an event loop of its own; SIGTERM and SIGINT set the event that it is given. For programs: it ends the process in any
    case, ten seconds after the first signal, at the second one, or a second after `work` if an agent still does not leave.
    """
    last = _LastResort()
    try:
        asyncio.run(_with_signals(work, last))
    finally:
        last.cancel()


class _LastResort:
    """Ends the process: an event loop does not close before its last task has ended, and an agent's may never."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def within(self, seconds: float, *, code: int) -> None:
        """Ends it after so many seconds, with this code, unless `cancel` comes before."""
        self.cancel()
        self._timer = threading.Timer(seconds, os._exit, [code])
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Lets it live."""
        if self._timer is not None:
            self._timer.cancel()


async def _with_signals(work: Callable[[asyncio.Event], Coroutine[object, object, None]], last: _LastResort) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def signalled(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()
        last.within(_LAST_SECONDS, code=_FAILED)

    with suppress(NotImplementedError):  # Windows: Ctrl-C cancels, which ends everything as well
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled, number)
    code = _FAILED
    try:
        await work(stop)
        code = 0
    finally:
        last.within(_LOOSE_ENDS_SECONDS, code=code)


def host(agent: Agent, *, name: str, config: Path | str | None = None, max_bot_turns: int = 8) -> None:
    """A whole program: reads the configuration, attends until it is stopped by a signal, and says on standard error what goes wrong.

    `config` is a TOML file; without it, the variables `BUBBLE_<NAME>_…` say all. Exits with status 2 for a wrong configuration, with 1 for
    what else keeps it from working.
    """
    log_to_stderr()
    try:
        file = None if config is None else Path(config)
        chosen = read_config(ConnectorConfig, name=name, file=file, environ=os.environ)
        run_until_signalled(
            lambda stop: launch(
                chosen,
                agent,
                name=name,
                stop=stop,
                max_bot_turns=max_bot_turns,
                on_ready=lambda: _say(f"{name} is attending"),
            )
        )
    except ConfigError as error:
        _say(f"{name}: {error}")
        sys.exit(ConfigError.exit_code)
    except BubbleError as error:
        _say(f"{name}: {error}")
        sys.exit(_FAILED)


class OneLine(logging.Formatter):
    """A message is one line, whatever others have put into it: it neither pretends to be several nor speaks to the terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        return super().formatMessage(record).translate(_VISIBLE)


def log_to_stderr() -> None:
    """The log of a connector's process: what Bubble does, and of everything else the warnings. A program that set up its own keeps it."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("bubble").setLevel(logging.INFO)
    logging.getLogger("bubble.client").setLevel(logging.WARNING)  # every attempt to come back; `Contact` says it once
    logging.getLogger("bubble.client.outage").setLevel(logging.ERROR)  # the same


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
