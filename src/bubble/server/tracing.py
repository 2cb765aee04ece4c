"""A span per request where OpenTelemetry is installed and somebody set it up; nothing otherwise.

Bubble installs no exporter: run it under `opentelemetry-instrument`, or set a tracer provider before the application starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

__all__ = ["RequestSpan", "Tracing"]

Headers = Sequence[tuple[bytes, bytes]]


class RequestSpan(Protocol):
    """The span of one request."""

    def answered(self, *, route: str, status: int, request_id: str) -> None:
        """What it came to."""


class _NoSpan:
    def answered(self, *, route: str, status: int, request_id: str) -> None:
        pass


_NO_SPAN = _NoSpan()


class Tracing:
    """Makes spans if there is anybody to take them."""

    def __init__(self) -> None:
        self._tracer = _find_tracer()

    @property
    def is_on(self) -> bool:
        """Whether spans are recorded."""
        return self._tracer is not None

    @contextmanager
    def request(self, method: str, headers: Headers) -> Iterator[RequestSpan]:
        """A server span around one request, child of the caller's where its headers name one."""
        if self._tracer is None:
            yield _NO_SPAN
            return
        from opentelemetry import propagate, trace

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        with self._tracer.start_as_current_span(
            method, context=propagate.extract(carrier), kind=trace.SpanKind.SERVER
        ) as span:
            yield _Recorded(span, method)


class _Recorded:
    def __init__(self, span: Span, method: str) -> None:
        self._span = span
        self._method = method

    def answered(self, *, route: str, status: int, request_id: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.update_name(f"{self._method} {route}")
        self._span.set_attribute("http.request.method", self._method)
        self._span.set_attribute("http.route", route)
        self._span.set_attribute("http.response.status_code", status)
        self._span.set_attribute("bubble.request_id", request_id)
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)


def _find_tracer() -> Tracer | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer("bubble.server")
