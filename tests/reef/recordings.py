"""The recorded exchanges with real agents, and what each should come to on a thread."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reef.raw_agent import Answer, Asked, json_answer

__all__ = ["CARDS", "Exchange", "Recording", "Replay", "recordings"]

_FOLDER = Path(__file__).resolve().parent.parent / "data" / "a2a"


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and the bytes of its answer."""

    request: Mapping[str, Any]
    response: Mapping[str, Any]

    @property
    def asked(self) -> Asked:
        """The request, as the stand-in would have seen it."""
        body = self.request.get("json")
        url = self.request["url"].split("/", 3)
        return Asked(
            method=self.request["method"],
            path="/" + (url[3] if len(url) > 3 else ""),
            headers={},
            body=b"" if body is None else json.dumps(body).encode(),
        )

    @property
    def message(self) -> Mapping[str, Any]:
        """The message that was sent; empty where none was."""
        body = self.request.get("json") or {}
        message: Mapping[str, Any] = (body.get("params") or body).get("message") or {}
        return message

    def answer(self, cuts: random.Random) -> Answer:
        """The recorded bytes, cut anywhere."""
        whole = "".join(chunk["data"] for chunk in self.response.get("chunks", [])).encode()
        places = sorted(cuts.sample(range(len(whole) + 1), min(len(whole), cuts.choice([0, 1, 7, 40]))))
        pieces = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
        content_type = self.response.get("headers", {}).get("content-type")
        return Answer(
            status=self.response["status"],
            headers={"Content-Type": content_type} if content_type else {},
            pieces=pieces,
            ending="complete" if self.response.get("ended") == "eof" else "cut",
        )


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One scenario with one server."""

    server: str
    scenario: str
    generation: str
    binding: str
    exchanges: Sequence[Exchange]

    def __str__(self) -> str:
        return f"{self.server}-{self.scenario}"

    def sent(self) -> Iterator[tuple[int, Exchange]]:
        """The exchanges that sent a message, with their places."""
        for at, exchange in enumerate(self.exchanges):
            if exchange.asked.procedure == "stream":
                yield at, exchange


class Replay:
    """Answers like the recording, from the exchange at `start` on: each request gets the next exchange that asked for the same."""

    def __init__(self, recording: Recording, *, start: int, cuts: random.Random) -> None:
        self._left = list(recording.exchanges[start:])
        self._cuts = cuts

    def __call__(self, asked: Asked) -> Answer:
        for at, exchange in enumerate(self._left):
            if exchange.asked.procedure == asked.procedure:
                del self._left[at]
                return exchange.answer(self._cuts)
        return json_answer({"message": "Task not found"}, status=404)


def _read(path: Path) -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return read


def recordings() -> Iterator[Recording]:
    """All of them, cards aside."""
    for path in sorted(_FOLDER.glob("*.json.gz")):
        server = path.name.removesuffix(".json.gz")
        for scenario, recorded in _read(path).items():
            if server != "cards" and scenario != "card":
                yield Recording(
                    server=server,
                    scenario=scenario,
                    generation="1.0" if recorded["protocol"].startswith("1") else "0.3",
                    binding=recorded["binding"],
                    exchanges=[Exchange(**exchange) for exchange in recorded["exchanges"]],
                )


CARDS = _read(_FOLDER / "cards.json.gz")
