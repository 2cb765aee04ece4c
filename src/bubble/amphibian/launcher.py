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
from bubble.amphibian.options import ConnectorConfig
from bubble.amphibian.store import MEMORY, AmphibianStore
from bubble.client import BubbleConnection
from bubble.protocol.errors import BubbleError

__all__ = ["default_store_path", "host", "launch", "run_until_signalled"]

_LAST_SECONDS: Final = 9.8
_FAILED: Final = 1


def default_store_path(name: str) -> Path:
    """Where the connector `name` keeps its store if it is not told otherwise."""
    return Path.home() / ".bubble" / name / "db.sqlite"


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

    Raises `BubbleError`: where the store cannot be used, the server is out of reach, or the token is refused or another principal's.
    """
    async with (
        await AmphibianStore.open(_store_path(config, name)) as store,
        BubbleConnection(config.bubble.url, token=config.bubble.token.get_secret_value()) as bubble,
    ):
        connector = Connector(
            agent,
            bubble=bubble,
            principal_id=config.bubble.principal_id,
            store=store,
            policy=config.backlog.policy(),
            max_bot_turns=max_bot_turns,
        )
        await connector.run(stop=stop, on_ready=on_ready)


def _store_path(config: ConnectorConfig, name: str) -> str:
    if config.store.path == MEMORY:
        return MEMORY
    return str(Path(config.store.path).expanduser() if config.store.path else default_store_path(name))


def run_until_signalled(work: Callable[[asyncio.Event], Coroutine[object, object, None]]) -> None:
    """Runs `work` in an event loop of its own; SIGTERM and SIGINT set the event that it is given.

    Ten seconds after the first signal, or at the second one, the process ends in any case, whatever an agent still does.
    """
    asyncio.run(_with_signals(work))


async def _with_signals(work: Callable[[asyncio.Event], Coroutine[object, object, None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows: Ctrl-C cancels, which ends everything as well
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _signalled, stop, number)
    await work(stop)


def _signalled(stop: asyncio.Event, number: int) -> None:
    if stop.is_set():
        os._exit(128 + number)
    stop.set()
    last = threading.Timer(_LAST_SECONDS, os._exit, [_FAILED])
    last.daemon = True
    last.start()


def host(agent: Agent, *, name: str, config: Path | str | None = None, max_bot_turns: int = 8) -> None:
    """A whole program: reads the configuration, attends until it is stopped by a signal, and says on standard error what goes wrong.

    `config` is a TOML file; without it, the variables `BUBBLE_<NAME>_…` say all. Exits with status 2 for a wrong configuration, with 1 for
    what else keeps it from working.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
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


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
