"""What `GET /metrics` tells, in the Prometheus text format. Each application has a registry of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from bubble.hub import HubStatistics
from bubble.server.messages.following import MessageStatistics
from bubble.server.watching.following import WatchStatistics
from bubble.store.records import StoreStatistics

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LATENCIES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_MANY = 1_024


class Metrics:
    """Counts requests and refused bearers, and reads the statistics of store, hub and messages when asked."""

    def __init__(
        self,
        *,
        store: Callable[[], StoreStatistics],
        hub: Callable[[], HubStatistics],
        messages: Callable[[], MessageStatistics],
        watches: Callable[[], WatchStatistics],
    ) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "bubble_http_request_seconds",
            "Time to answer a request, streams and held pages excluded",
            ["method", "route"],
            buckets=_LATENCIES,
            registry=self._registry,
        )
        self._requests = Counter(
            "bubble_http_requests", "Requests answered", ["method", "route", "status"], registry=self._registry
        )
        self._failures = Counter("bubble_auth_failures", "Bearers that were refused", ["door"], registry=self._registry)
        self._lag = Gauge(
            "bubble_loop_lag_seconds", "How late the event loop ran a timer, lately", registry=self._registry
        )
        self._settle: list[Callable[[], None]] = []
        self._of_request: dict[tuple[str, str, int], Callable[[float | None], None]] = {}
        self._registry.register(_Statistics(store, hub, messages, watches))

    def request(self, method: str, route: str, status: int, *, seconds: float | None) -> None:
        """One answered request; `seconds` None where its time says nothing (a stream)."""
        count = self._of_request.get((method, route, status))
        if count is None:
            count = self._of_request[method, route, status] = self._counting(method, route, status)
        count(seconds)

    def _counting(self, method: str, route: str, status: int) -> Callable[[float | None], None]:
        requests = self._requests.labels(method, route, str(status))
        times = self._seconds.labels(method, route)

        def count(seconds: float | None) -> None:
            requests.inc()
            if seconds is not None:
                times.observe(seconds)

        return count

    def many(self, method: str, route: str, status: int) -> Callable[[float], None]:
        """Like `request`, for one kind that comes very often: kept aside and counted together, at the latest when asked for."""
        requests = self._requests.labels(method, route, str(status))
        times = self._seconds.labels(method, route)
        waiting: list[float] = []

        def settle() -> None:
            requests.inc(len(waiting))
            for seconds in waiting:
                times.observe(seconds)
            waiting.clear()

        def count(seconds: float) -> None:
            waiting.append(seconds)
            if len(waiting) >= _MANY:
                settle()

        self._settle.append(settle)
        return count

    def refused(self, door: str) -> None:
        """One bearer refused at `door` (`http` or `websocket`)."""
        self._failures.labels(door).inc()

    def loop_lag(self, seconds: float) -> None:
        """How late the event loop was."""
        self._lag.set(seconds)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        for settle in self._settle:
            settle()
        return generate_latest(self._registry)


class _Statistics:
    """Reads the statistics of store, hub and messages at the moment of a scrape."""

    def __init__(
        self,
        store: Callable[[], StoreStatistics],
        hub: Callable[[], HubStatistics],
        messages: Callable[[], MessageStatistics],
        watches: Callable[[], WatchStatistics],
    ) -> None:
        self._store = store
        self._hub = hub
        self._messages = messages
        self._watches = watches

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry need not ask before the store is open."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        store, hub, messages, watches = self._store(), self._hub(), self._messages(), self._watches()
        yield CounterMetricFamily("bubble_appends", "Appends committed", value=store.appends)
        yield CounterMetricFamily("bubble_appends_refused", "Appends refused", value=store.refused)
        yield CounterMetricFamily("bubble_commits", "Commits, each of a group of appends", value=store.commits)
        yield CounterMetricFamily("bubble_commit_seconds", "Time spent in commits", value=store.commit_seconds)
        yield GaugeMetricFamily("bubble_largest_batch", "Appends in the largest commit", value=store.largest_batch)
        yield GaugeMetricFamily("bubble_appends_queued", "Appends that wait for their commit", value=store.queued)
        yield CounterMetricFamily("bubble_deliveries", "Events written to connections", value=hub.deliveries)
        yield GaugeMetricFamily("bubble_connections", "Open sockets and event streams", value=hub.connections)
        yield GaugeMetricFamily("bubble_subscriptions", "Open subscriptions", value=hub.subscriptions)
        yield GaugeMetricFamily(
            "bubble_lag", "Events that the subscription furthest behind has yet to get", value=hub.lag
        )
        yield GaugeMetricFamily("bubble_tails", "Threads that somebody follows here", value=hub.tails)
        yield GaugeMetricFamily(
            "bubble_watched_threads", "Threads whose messages somebody watches, per grouping", value=messages.followings
        )
        yield GaugeMetricFamily("bubble_message_viewers", "Open streams of messages", value=messages.viewers)
        yield GaugeMetricFamily("bubble_watched_bots", "Bots that somebody watches, per thread", value=watches.sessions)
        yield GaugeMetricFamily("bubble_bot_watchers", "Watchers of bots", value=watches.watchers)
        yield CounterMetricFamily("bubble_events_folded", "Events folded into messages", value=messages.folded)
