"""Requests by type: numbers, errors and durations, recorded by the dispatcher.

Recording is on the path of every request, so a request that is answered at once only adds its duration to a
list; `fold` counts the lists, twenty times a second and before a scrape. Such a request has no remote time:
its total time is its local time, and they share the buckets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from moldau.metrics.latencies import Latencies, bucket_of, merged
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS, Api
from moldau.protocol.headers import RequestHeader
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.schema import Message

_FETCH = int(ApiKey.FETCH)
_MICROSECONDS = 1e6
_VERSION_BITS = 8
#: Durations of one fold that are taken for the quantiles.
_SAMPLES = 256


class RequestRecorder:
    """Requests of one type. `at_once` are those without remote time."""

    __slots__ = (
        "at_once",
        "errors",
        "has_error",
        "has_throttle",
        "local",
        "name",
        "remote",
        "throttle",
        "total",
        "versions",
        "waiting",
    )

    def __init__(self, name: str, api: Api) -> None:
        self.name = name
        #: With the newest version, so that a type without requests is counted as 0.
        self.versions = defaultdict(int, {api.max_version: 0})
        fields = {field.name for field in api.response.FIELDS}
        #: Whether responses have an error of the whole request, and a throttle time.
        self.has_error = "error_code" in fields
        self.has_throttle = "throttle_time_ms" in fields
        #: By error code; requests without an error are not counted here.
        self.errors: dict[int, int] = {}
        #: Requests that wait for their response now.
        self.waiting = 0
        self.at_once = Latencies()
        self.total = Latencies()
        self.local = Latencies()
        self.remote = Latencies()
        self.throttle = Latencies()

    @property
    def count(self) -> int:
        return sum(self.versions.values())

    def rotate(self) -> None:
        for each in (self.at_once, self.total, self.local, self.remote, self.throttle):
            each.rotate()

    def total_counts(self) -> list[int]:
        return merged((self.at_once.recent(), self.total.recent()))

    def local_counts(self) -> list[int]:
        return merged((self.at_once.recent(), self.local.recent()))

    @property
    def total_us(self) -> int:
        return self.at_once.sum_us + self.total.sum_us

    @property
    def local_us(self) -> int:
        return self.at_once.sum_us + self.local.sum_us

    def remote_counts(self) -> list[int]:
        counts = self.remote.recent()
        counts[0] += sum(self.at_once.recent())
        return counts

    def throttle_counts(self) -> list[int]:
        counts = self.throttle.recent()
        counts[0] += max(0, sum(self.total_counts()) - sum(counts))
        return counts


class _Durations:
    """Durations of requests of one type and version that were answered at once, until they are counted.

    Of very many, some are taken for the quantiles; number and sum are exact.
    """

    __slots__ = ("recorder", "seconds", "version")

    def __init__(self, recorder: RequestRecorder, version: int) -> None:
        self.recorder = recorder
        self.version = version
        self.seconds: list[float] = []

    def fold(self) -> None:
        seconds, self.seconds = self.seconds, []
        number, latencies = len(seconds), self.recorder.at_once
        self.recorder.versions[self.version] += number
        latencies.sum_us += round(sum(seconds) * _MICROSECONDS)
        # Odd, so that requests in a regular order are taken from all places of it.
        step = 1 if number <= _SAMPLES else (number - 1) // _SAMPLES + 1 | 1
        for first in range(0, number, step):
            weight = min(step, number - first)
            latencies.counts[bucket_of(int(seconds[first] * _MICROSECONDS))] += weight


class RequestMetrics:
    """All requests of a node. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._recorders: dict[int, RequestRecorder] = {}
        #: Durations that are not counted yet, by type and version of the request.
        self._durations: dict[int, _Durations] = {}
        fetch = APIS[ApiKey.FETCH]
        self.fetch_consumer = RequestRecorder("FetchConsumer", fetch)
        self.fetch_follower = RequestRecorder("FetchFollower", fetch)
        self._recorder(int(ApiKey.PRODUCE))

    def __iter__(self) -> Iterator[RequestRecorder]:
        yield from list(self._recorders.values())
        yield self.fetch_consumer
        yield self.fetch_follower

    def rotate(self) -> None:
        """Begin a new minute of the quantiles."""
        for each in self:
            each.rotate()

    # For the dispatcher.

    def waiting(
        self, header: RequestHeader, request: Message, begin: float, handled: float
    ) -> WaitingRequest:
        """Return the measurement of a request whose handler returned at `handled` without a response."""
        return WaitingRequest(self, self._of(header, request), header.api_version, begin, handled)

    def answered(self, header: RequestHeader, request: Message, response: Any, begin: float) -> None:
        """Record a request that is answered at once; `response` is None for acks=0."""
        durations = self._durations.get(header.api_key << _VERSION_BITS | header.api_version)
        if durations is None:
            durations = self._durations_of(header, request)
        durations.seconds.append(self.now() - begin)
        recorder = durations.recorder
        if response is not None and (
            (recorder.has_error and response.error_code)
            or (recorder.has_throttle and response.throttle_time_ms)
        ):
            count_response(recorder, response)

    def fold(self) -> None:
        """Add what was recorded since the last call to the counts; called many times a second."""
        for durations in self._durations.values():
            if durations.seconds:
                durations.fold()

    def _durations_of(self, header: RequestHeader, request: Message) -> _Durations:
        """Return the durations of a type and version, created if necessary, or of a kind of Fetch."""
        recorder = self._of(header, request)
        key = header.api_key << _VERSION_BITS | header.api_version
        if header.api_key == _FETCH:
            # Negative, so that `answered` does not find it by the type alone.
            key = -key * 2 - (recorder is self.fetch_follower)
        durations = self._durations.get(key)
        if durations is None:
            durations = self._durations[key] = _Durations(recorder, header.api_version)
        return durations

    def _of(self, header: RequestHeader, request: Message) -> RequestRecorder:
        key = header.api_key
        if key == _FETCH and isinstance(request, FetchRequest):
            is_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
            return self.fetch_follower if is_follower else self.fetch_consumer
        return self._recorders.get(key) or self._recorder(key)

    def _recorder(self, key: int) -> RequestRecorder:
        api = APIS[ApiKey(key)]
        recorder = self._recorders[key] = RequestRecorder(api.name, api)
        return recorder


class WaitingRequest:
    """A request that waits for replicas, a flush, records, the disk or another node."""

    __slots__ = ("_begin", "_handled", "_metrics", "_recorder", "_version")

    def __init__(
        self,
        metrics: RequestMetrics,
        recorder: RequestRecorder,
        version: int,
        begin: float,
        handled: float,
    ) -> None:
        self._metrics = metrics
        self._recorder = recorder
        self._version = version
        self._begin = begin
        self._handled = handled
        recorder.waiting += 1

    def end(self) -> None:
        self._recorder.waiting -= 1

    def answered(self, response: Message | None) -> None:
        recorder, begin, handled, now = self._recorder, self._begin, self._handled, self._metrics.now()
        recorder.total.record(int((now - begin) * _MICROSECONDS))
        recorder.local.record(int((handled - begin) * _MICROSECONDS))
        recorder.remote.record(int((now - handled) * _MICROSECONDS))
        recorder.versions[self._version] += 1
        if response is not None:
            count_response(recorder, response)


def count_response(recorder: RequestRecorder, response: Any) -> None:
    """Count the error and the throttle time of a response."""
    if recorder.has_error and response.error_code:
        recorder.errors[response.error_code] = recorder.errors.get(response.error_code, 0) + 1
    if recorder.has_throttle and response.throttle_time_ms:
        recorder.throttle.record(response.throttle_time_ms * 1000)
