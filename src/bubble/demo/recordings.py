"""Recorded replies: streams of `UIMessageChunk`s, one JSON text per line (see `recordings/README.md`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

__all__ = ["recording", "recordings"]


def recording(name: str) -> Sequence[bytes]:
    """The chunks of one recorded reply in order, each as the JSON text that was recorded."""
    text = files("bubble.demo").joinpath("recordings", f"{name}.jsonl").read_bytes()
    return text.splitlines()


def recordings() -> Sequence[str]:
    """The names of all recorded replies."""
    folder = files("bubble.demo").joinpath("recordings")
    return sorted(entry.name.removesuffix(".jsonl") for entry in folder.iterdir() if entry.name.endswith(".jsonl"))
