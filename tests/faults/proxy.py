"""A TCP proxy on 127.0.0.1 that cuts, stalls and splits connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

__all__ = ["FaultyProxy"]

_CHUNK = 64 * 1024


class FaultyProxy:
    """Passes bytes on between clients and one server, until told otherwise.

    `fuse` is asked once per connection how many bytes of the server's it may carry before it is cut, in the middle of whatever is being
    sent; None for no limit. `piece` splits what the server sends into writes of so many bytes.
    """

    def __init__(self, target_port: int, *, fuse: Callable[[], int | None] = lambda: None, piece: int = _CHUNK) -> None:
        self.port = 0
        self.fuse = fuse
        self.piece = piece
        self.connections = 0
        self.cuts = 0
        self._target_port = target_port
        self._open: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    def cut_all(self) -> None:
        """Breaks off every connection, now."""
        for writer in list(self._open):
            writer.transport.abort()
        self.cuts += len(self._open) // 2

    def stall(self) -> None:
        """Passes nothing on until `flow`; connections stay open, new ones too."""
        self._flowing.clear()

    def flow(self) -> None:
        """Passes everything on again."""
        self._flowing.set()

    async def serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            to_client.transport.abort()
            return
        both = (to_client, to_server)
        self._open.update(both)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass_on(from_client, to_server, both, left=None))
                tasks.create_task(self._pass_on(from_server, to_client, both, left=self.fuse()))
        finally:
            self._open.difference_update(both)
            for writer in both:
                writer.transport.abort()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        *,
        left: int | None,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._flowing.wait()
                for start in range(0, len(data), self.piece):
                    piece = data[start : start + self.piece]
                    if left is not None:
                        piece, left = piece[:left], left - len(piece)
                    writer.write(piece)
                    await writer.drain()
                    if left is not None and left <= 0:
                        self.cuts += 1
                        return self._cut(both)
        return self._cut(both)

    def _cut(self, both: tuple[asyncio.StreamWriter, asyncio.StreamWriter]) -> None:
        # What was written before is sent; then the peer sees the end, without a closing handshake.
        for writer in both:
            writer.close()

    @classmethod
    @asynccontextmanager
    async def listening(
        cls, target_port: int, *, fuse: Callable[[], int | None] = lambda: None, piece: int = _CHUNK
    ) -> AsyncIterator[FaultyProxy]:
        """A proxy on a free port, for as long as the block lasts."""
        proxy = cls(target_port, fuse=fuse, piece=piece)
        serving: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(proxy.serve(reader, writer))
            serving.add(task)
            task.add_done_callback(serving.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            proxy.flow()
            proxy.cut_all()
            if serving:
                await asyncio.wait(serving)
