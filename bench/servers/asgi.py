"""The product as any ASGI server would run it: the same application, store and hub, one ASGI `send` for each event and reader."""

from __future__ import annotations

from argparse import ArgumentParser

from bench.servers.stack import listen, run, serve
from bubble.server.app import create_app
from bubble.server.hot import HotAppends
from bubble.server.hot_protocol import hot_protocol
from bubble.server.logs import configure_logging
from bubble.server.settings import Settings

__all__ = ["main"]


async def _serve(settings: Settings) -> None:
    configure_logging(settings.log)
    with listen() as listening:
        app = create_app(settings, port=listening.getsockname()[1])
        async with app:
            # Appends go in as fast as they do in the product: only the way out differs.
            await serve(app, listening, http=hot_protocol(HotAppends(app.services)))


def main() -> None:
    """Serves until standard input ends."""
    parser = ArgumentParser(allow_abbrev=False)
    parser.add_argument("--data", required=True)
    parser.add_argument("--store")
    given = parser.parse_args()
    run(_serve(Settings(data=given.data, store=given.store, port=0)))


if __name__ == "__main__":
    main()
