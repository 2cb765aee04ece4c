"""Serves in a process of its own: `python child.py '{"port": 0, ...}'`. Prints a line of JSON once it listens."""

from __future__ import annotations

import json
import sys

from bubble.server.running import Started, run
from bubble.server.settings import Settings


def tell(started: Started) -> None:
    """What the test has to know."""
    first = started.first_start
    line = {
        "url": started.url,
        "port": started.port,
        "token": first.token if first else None,
        "login": first.login_url if first else None,
    }
    print(json.dumps(line), flush=True)  # noqa: T201 - the test reads it


if __name__ == "__main__":
    run(Settings(**json.loads(sys.argv[1])), on_started=tell)
