"""Bubble: the log that people and agents share."""

from __future__ import annotations

__version__ = "0.1.0"
