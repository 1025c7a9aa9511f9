"""Requests by type: numbers, errors and durations, recorded by the dispatcher.

Recording is on the path of every request, so it finds the lists of the request's type and version with two
indexes, and appends the durations; `fold` counts the lists, twenty times a second and before a scrape. A
request that is answered at once has no remote time: its total time is its local time, and they share the
buckets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import add
from typing import Any

from moldau.metrics.latencies import Latencies, bucket_of, merged
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS, Api
from moldau.protocol.headers import RequestHeader
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.schema import Message

_MICROSECONDS = 1e6
#: Durations of one fold that are taken for the quantiles: all of them up to 1,280 a second.
_SAMPLES = 64
#: Sizes of requests of one type vary less than durations.
_SIZE_SAMPLES = 16


class RequestRecorder:
    """Requests of one type. `at_once` are those without remote time."""

    __slots__ = (
        "at_once",
        "bytes",
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
        #: Sizes in bytes, in the buckets of durations.
        self.bytes = Latencies()

    @property
    def count(self) -> int:
        return sum(self.versions.values())

    def rotate(self) -> None:
        for each in (self.at_once, self.total, self.local, self.remote, self.throttle, self.bytes):
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
    """Durations of requests of one type and version, until they are counted.

    `at_once` are those of requests that were answered at once; of the others, `local` and `remote`. Of very
    many, some are taken for the quantiles; number and sum are exact.
    """

    __slots__ = ("at_once", "has_error", "has_throttle", "local", "recorder", "remote", "sizes", "version")

    def __init__(self, recorder: RequestRecorder, version: int) -> None:
        self.recorder = recorder
        self.version = version
        self.has_error = recorder.has_error
        self.has_throttle = recorder.has_throttle
        self.at_once: list[float] = []
        self.local: list[float] = []
        self.remote: list[float] = []
        self.sizes: list[int] = []

    def fold(self) -> None:
        if self.sizes:
            sizes, self.sizes = self.sizes, []
            _count(self.recorder.bytes, sizes, 1, _SIZE_SAMPLES)
        if self.at_once:
            seconds, self.at_once = self.at_once, []
            self.recorder.versions[self.version] += len(seconds)
            _count(self.recorder.at_once, seconds, _MICROSECONDS)
        if self.local:
            local, self.local = self.local, []
            remote, self.remote = self.remote, []
            self.recorder.versions[self.version] += len(local)
            _count(self.recorder.local, local, _MICROSECONDS)
            _count(self.recorder.remote, remote, _MICROSECONDS)
            _count(self.recorder.total, list(map(add, local, remote)), _MICROSECONDS)


def _count(latencies: Latencies, values: Sequence[float], scale: float, samples: int = _SAMPLES) -> None:
    number = len(values)
    latencies.count += number
    latencies.sum_us += round(sum(values) * scale)
    # Odd, so that requests in a regular order are taken from all places of it.
    step = 1 if number <= samples else (number - 1) // samples + 1 | 1
    counts = latencies.counts
    for first in range(0, number, step):
        counts[bucket_of(int(values[first] * scale))] += min(step, number - first)


#: By version; None before the first request.
_Versions = list[_Durations | None]


class RequestMetrics:
    """All requests of a node. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._recorders: dict[int, RequestRecorder] = {}
        fetch = APIS[ApiKey.FETCH]
        self.fetch_consumer = RequestRecorder("FetchConsumer", fetch)
        self.fetch_follower = RequestRecorder("FetchFollower", fetch)
        #: By type of the request and version. Those of Fetch stay empty: there are two kinds of it.
        self._durations: list[_Versions] = [[] for _ in range(max(APIS) + 1)]
        for key, api in APIS.items():
            self._durations[key] = [None] * (api.max_version + 1)
        self._of_consumers: _Versions = [None] * (fetch.max_version + 1)
        self._of_followers: _Versions = [None] * (fetch.max_version + 1)
        #: All that exist.
        self._known: list[_Durations] = []
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
        self, header: RequestHeader, request: Message, begin: float, handled: float, size: int
    ) -> WaitingRequest:
        """Return the measurement of a request of `size` bytes whose handler returned at `handled` without a
        response."""
        durations = self._durations[header.api_key][header.api_version]
        if durations is None:
            durations = self._durations_of(header, request)
        durations.sizes.append(size)
        return WaitingRequest(durations, self.now, begin, handled)

    def answered(
        self, header: RequestHeader, request: Message, response: Any, begin: float, size: int
    ) -> None:
        """Record a request that is answered at once; `response` is None for acks=0."""
        durations = self._durations[header.api_key][header.api_version]
        if durations is None:
            durations = self._durations_of(header, request)
        durations.sizes.append(size)
        durations.at_once.append(self.now() - begin)
        if response is not None and (
            (durations.has_throttle and response.throttle_time_ms)
            or (durations.has_error and response.error_code)
        ):
            count_response(durations.recorder, response)

    def fold(self) -> None:
        """Add what was recorded since the last call to the counts; called many times a second."""
        for durations in self._known:
            durations.fold()

    def _durations_of(self, header: RequestHeader, request: Message) -> _Durations:
        """Return the durations of a kind of Fetch, or of a type and version that is new."""
        version = header.api_version
        if isinstance(request, FetchRequest):
            is_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
            versions = self._of_followers if is_follower else self._of_consumers
            durations = versions[version]
            if durations is not None:
                return durations
            recorder = self.fetch_follower if is_follower else self.fetch_consumer
        else:
            versions, recorder = self._durations[header.api_key], self._recorder(header.api_key)
        durations = versions[version] = _Durations(recorder, version)
        self._known.append(durations)
        return durations

    def _recorder(self, key: int) -> RequestRecorder:
        found = self._recorders.get(key)
        if found is None:
            api = APIS[ApiKey(key)]
            found = self._recorders[key] = RequestRecorder(api.name, api)
        return found


class WaitingRequest:
    """A request that waits for replicas, a flush, records, the disk or another node."""

    __slots__ = ("_begin", "_durations", "_handled", "_now")

    def __init__(self, durations: _Durations, now: Callable[[], float], begin: float, handled: float) -> None:
        self._durations = durations
        self._now = now
        self._begin = begin
        self._handled = handled
        durations.recorder.waiting += 1

    def end(self) -> None:
        self._durations.recorder.waiting -= 1

    def answered(self, response: Any) -> None:
        durations, handled = self._durations, self._handled
        durations.local.append(handled - self._begin)
        durations.remote.append(self._now() - handled)
        if response is not None and (
            (durations.has_throttle and response.throttle_time_ms)
            or (durations.has_error and response.error_code)
        ):
            count_response(durations.recorder, response)


def count_response(recorder: RequestRecorder, response: Any) -> None:
    """Count the error and the throttle time of a response."""
    if recorder.has_error and response.error_code:
        recorder.errors[response.error_code] = recorder.errors.get(response.error_code, 0) + 1
    if recorder.has_throttle and response.throttle_time_ms:
        recorder.throttle.record(response.throttle_time_ms * 1000)
