"""From the table of operations to Starlette's routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from bubble.protocol.errors import route_not_found
from bubble.server.calls import carry_out
from bubble.server.envelope import WrongMethod, exchange_of
from bubble.server.operations import Operation
from bubble.server.services import Services

__all__ = ["make_router"]


class _Path:
    """Everything that can be done on one path."""

    def __init__(self, path: str, operations: Iterable[Operation], services: Callable[[Operation], Services]) -> None:
        self.path = path
        self._services = services
        self._by_method: dict[str, Operation] = {operation.method: operation for operation in operations}
        if "GET" in self._by_method:
            self._by_method["HEAD"] = self._by_method["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange_of(scope).route = self.path
        operation = self._by_method.get(scope["method"])
        if operation is None:
            raise WrongMethod(", ".join(sorted(self._by_method)))
        await carry_out(operation, self._services(operation), scope, receive, send)


def make_router(operations: Iterable[Operation], services: Callable[[Operation], Services]) -> Router:
    """A router that raises `BubbleError`s; `services` is asked at each request, and may refuse it."""
    by_path = sorted(operations, key=_specificity)
    routes = [
        Route(path, endpoint=_Path(path, group, services))
        for path, group in groupby(by_path, key=lambda operation: operation.path)
    ]
    return Router(routes, redirect_slashes=False, default=_no_route)


def _specificity(operation: Operation) -> tuple[int, str]:
    # A parameter matches any text, so paths without one come first.
    return operation.path.count("{"), operation.path


async def _no_route(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - an ASGI application
    raise route_not_found()
