"""What can wait until the writer has time: settling, checkpoints, erasing. Always in bounded steps, between two groups."""

from __future__ import annotations

import logging
import time
from typing import Final

import apsw

from bubble.store.sqlite.activity import Activity
from bubble.store.sqlite.checkpoints import Checkpoints
from bubble.store.sqlite.connection import STORE_ERRORS
from bubble.store.sqlite.erasing import Erasing

__all__ = ["Upkeep"]

#: Without anything to write for so long, the writer is idle.
_IDLE_SECONDS: Final = 0.25
#: Unsettled entries, or the age of the oldest, that make settling due though the writer is busy.
_MANY_UNSETTLED: Final = 8_192
_SETTLE_SECONDS: Final = 2.0
_AFTER_FAILURE_SECONDS: Final = 1.0

_log = logging.getLogger("bubble.store")


class Upkeep:
    """Used by the writer's thread alone."""

    def __init__(self, activity: Activity, checkpoints: Checkpoints, erasing: Erasing) -> None:
        self.erasing = erasing
        self._activity = activity
        self._checkpoints = checkpoints
        self._settled_at = time.monotonic()
        self._failed_at: float | None = None
        #: A reader that was in the way of emptying the log is given some time, so that appends do not wait for it again and again.
        self._empty_log_at = 0.0

    def patience(self, db: apsw.Connection) -> float | None:
        """How many seconds the writer may sleep when nothing arrives; None: as long as it likes."""
        if self._failed_at is not None:
            return _AFTER_FAILURE_SECONDS
        if self.erasing.has_more:
            return 0.0
        if self._activity or self.erasing.wants_empty_log or self._checkpoints.is_wanted(db):
            return _IDLE_SECONDS
        return None

    def run(self, db: apsw.Connection, *, is_idle: bool) -> None:
        """Takes one step of each kind that is due. A failure is logged and tried again later."""
        if self._failed_at is not None and time.monotonic() - self._failed_at < _AFTER_FAILURE_SECONDS:
            return
        try:
            self._run(db, is_idle=is_idle)
        except STORE_ERRORS as error:
            if self._failed_at is None:
                _log.warning("upkeep of the store failed and will be tried again: %s", error)
            self._failed_at = time.monotonic()
            self.erasing.postpone()
        except Exception:  # noqa: BLE001 - a mistake in here must not end the writer's thread
            _log.exception("upkeep of the store failed")
            self._failed_at = time.monotonic()
        else:
            self._failed_at = None

    def finish(self, db: apsw.Connection) -> None:
        """Leaves a file that is complete in itself. What fails here is done when it is opened again."""
        self._checkpoints.close()
        self.erasing.postpone()
        try:
            self._activity.settle(db)
            self._checkpoints.truncate(db)
        except STORE_ERRORS as error:
            _log.warning("the store was closed without its last upkeep: %s", error)

    def _run(self, db: apsw.Connection, *, is_idle: bool) -> None:
        if self.erasing.has_more:
            self.erasing.erase_slice(db)
        if self._is_settling_due(is_idle=is_idle):
            self._activity.settle_slice(db)
            if not self._activity.is_settling:
                self._settled_at = time.monotonic()
        self._checkpoints.run(db, is_idle=is_idle)
        if self.erasing.wants_empty_log and time.monotonic() >= self._empty_log_at:
            if self._checkpoints.truncate(db):
                self.erasing.log_is_empty()
            else:
                self._empty_log_at = time.monotonic() + _IDLE_SECONDS

    def _is_settling_due(self, *, is_idle: bool) -> bool:
        activity = self._activity
        if not activity:
            return False
        is_due = is_idle or activity.is_settling or len(activity) > _MANY_UNSETTLED
        return is_due or time.monotonic() - self._settled_at > _SETTLE_SECONDS
