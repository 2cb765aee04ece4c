"""One file for each figure, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.figure import Figure
from bench.figures.assembler import REDUCER
from bench.figures.connector import CONNECTOR_IDLE, CONNECTOR_LATENCY
from bench.figures.fan_out import FAN_OUT_100, FAN_OUT_1000
from bench.figures.frozen_reader import FROZEN_READER
from bench.figures.history import HISTORY
from bench.figures.http_appends import HTTP_APPENDS_1, HTTP_APPENDS_32, HTTP_BATCHES
from bench.figures.idle_memory import IDLE_MEMORY
from bench.figures.latency import LATENCY
from bench.figures.long_backlog import LONG_BACKLOG
from bench.figures.messages import MESSAGES
from bench.figures.page import PAGE
from bench.figures.reef import REEF_LATENCY
from bench.figures.replay import REPLAY
from bench.figures.watch import WATCHERS
from bench.figures.websocket_appends import WEBSOCKET_APPENDS

__all__ = ["FIGURES"]

FIGURES: Final[Sequence[Figure]] = (
    FAN_OUT_100,
    FAN_OUT_1000,
    REPLAY,
    HTTP_APPENDS_1,
    HTTP_APPENDS_32,
    HTTP_BATCHES,
    WEBSOCKET_APPENDS,
    LATENCY,
    HISTORY,
    IDLE_MEMORY,
    FROZEN_READER,
    LONG_BACKLOG,
    MESSAGES,
    PAGE,
    REDUCER,
    CONNECTOR_LATENCY,
    CONNECTOR_IDLE,
    REEF_LATENCY,
    WATCHERS,
)
