"""What the server says of itself: structured lines through the standard `logging`, JSON or for a console.

The loggers here wrap `logging.getLogger("bubble")`, so an application that embeds Bubble decides what becomes of the lines;
`configure_logging` is for the process that `bubble serve` runs. A line never holds a token, a query string or a payload.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import Processor

from bubble.server.options import LogOptions

__all__ = ["configure_logging", "logger"]

_shared: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]

logger: BoundLogger = structlog.wrap_logger(
    logging.getLogger("bubble"),
    processors=[structlog.stdlib.filter_by_level, *_shared, ProcessorFormatter.wrap_for_formatter],
    wrapper_class=BoundLogger,
    cache_logger_on_first_use=True,
)


def configure_logging(options: LogOptions, *, stream: TextIO = sys.stderr) -> None:
    """Sends the lines of this process, and of the libraries in it, to `stream`."""
    on_console = options.format == "console" or (options.format == "auto" and stream.isatty())
    last: list[Processor]
    if on_console:
        last = [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
    else:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        ProcessorFormatter(foreign_pre_chain=_shared, processors=[ProcessorFormatter.remove_processors_meta, *last])
    )
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("bubble").setLevel(options.level.upper())
