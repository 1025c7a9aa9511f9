"""What the dispatcher records of requests."""

from __future__ import annotations

import sys
from collections.abc import Callable

from moldau.base.errors import ErrorCode
from moldau.metrics.latencies import quantiles_ms
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.headers import RequestHeader
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.produce import ProduceRequest, ProduceResponse
from moldau.server.metrics.requests import RequestMetrics


class Seconds:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def header(key: ApiKey, version: int = 4) -> RequestHeader:
    return RequestHeader(key, version, 1, "client")


def test_a_request_answered_at_once_has_no_remote_time() -> None:
    clock = Seconds()
    metrics = RequestMetrics(clock)
    clock.now += 0.002
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, throttle_time_ms=30)
    metrics.answered(header(ApiKey.HEARTBEAT), HeartbeatRequest(), response, 100.0, 40)
    metrics.fold()
    recorder = next(each for each in metrics if each.name == "Heartbeat")
    assert (recorder.count, recorder.versions[4]) == (1, 1)
    assert recorder.errors == {ErrorCode.REBALANCE_IN_PROGRESS: 1}
    assert recorder.total_us == recorder.local_us
    assert abs(recorder.total_us - 2000) <= 1
    assert recorder.remote.sum_us == 0
    [total, remote, throttled] = [
        quantiles_ms(counts, (0.5,))[0]
        for counts in (recorder.total_counts(), recorder.remote_counts(), recorder.throttle_counts())
    ]
    assert abs(total - 2) < 0.15
    assert remote == 0
    assert abs(throttled - 30) < 2


def test_a_request_that_waits_has_three_times() -> None:
    clock = Seconds()
    metrics = RequestMetrics(clock)
    clock.now += 0.001
    waiting = metrics.waiting(header(ApiKey.PRODUCE, 9), ProduceRequest(), 100.0, clock.now, 40)
    recorder = next(each for each in metrics if each.name == "Produce")
    assert recorder.waiting == 1
    clock.now += 0.009
    waiting.end()
    waiting.answered(None)
    metrics.fold()
    assert (recorder.waiting, recorder.count) == (0, 1)
    times = (recorder.total_us, recorder.local_us, recorder.remote.sum_us)
    assert all(abs(found - wanted) <= 1 for found, wanted in zip(times, (10_000, 1000, 9000), strict=True))


def test_followers_and_consumers_are_kept_apart() -> None:
    metrics = RequestMetrics(Seconds())
    follower = FetchRequest(replica_state=ReplicaState(replica_id=2))
    for request in (FetchRequest(), follower, FetchRequest(replica_id=3)):
        metrics.answered(header(ApiKey.FETCH, 12), request, FetchResponse(), 100.0, 40)
    metrics.fold()
    assert (metrics.fetch_consumer.count, metrics.fetch_follower.count) == (1, 2)


def test_a_request_of_many_minutes_is_counted() -> None:
    clock = Seconds()
    metrics = RequestMetrics(clock)
    clock.now += 3600
    metrics.answered(header(ApiKey.PRODUCE, 9), ProduceRequest(), None, 100.0, 40)
    metrics.fold()
    recorder = next(each for each in metrics if each.name == "Produce")
    assert sum(recorder.total_counts()) == 1


def test_number_and_sum_of_very_many_requests_are_exact() -> None:
    clock = Seconds()
    metrics = RequestMetrics(clock)
    for number in range(10_001):
        clock.now = 100 + 0.001 * (1 + number % 10)
        metrics.answered(header(ApiKey.PRODUCE, 9), ProduceRequest(), None, 100.0, 40)
    metrics.fold()
    recorder = next(each for each in metrics if each.name == "Produce")
    assert (recorder.count, sum(recorder.total_counts())) == (10_001, 10_001)
    assert abs(recorder.total_us - 55_001_000) < 2000
    assert abs(quantiles_ms(recorder.total_counts(), (0.5,))[0] - 5) < 1


def test_numbers_and_sums_of_very_many_requests_that_wait_are_exact() -> None:
    clock = Seconds()
    metrics = RequestMetrics(clock)
    for number in range(5001):
        clock.now = 100.001
        waiting = metrics.waiting(header(ApiKey.PRODUCE, 9), ProduceRequest(), 100.0, clock.now, 40)
        clock.now += 0.001 * (1 + number % 10)
        waiting.end()
        waiting.answered(ProduceResponse(throttle_time_ms=number % 2))
    metrics.fold()
    recorder = next(each for each in metrics if each.name == "Produce")
    assert (recorder.count, recorder.waiting, recorder.throttle.count) == (5001, 0, 2500)
    for counts in (recorder.total_counts(), recorder.local_counts(), recorder.remote_counts()):
        assert sum(counts) == 5001
    assert abs(recorder.remote.sum_us - 27_501_000) < 2000
    assert abs(recorder.total_us - recorder.local_us - recorder.remote.sum_us) < 3
    assert abs(quantiles_ms(recorder.total_counts(), (0.5,))[0] - 6) < 1


def calls_of(function: Callable[[], object]) -> int:
    """Count the Python functions that a call enters."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_recording_takes_few_calls() -> None:
    """It is on the path of every request; the numbers include the call itself and the test's clock."""
    metrics = RequestMetrics(Seconds())
    produce, produced = ProduceRequest(), ProduceResponse()
    fetch, fetched = FetchRequest(), FetchResponse()
    produce_header, fetch_header = header(ApiKey.PRODUCE, 9), header(ApiKey.FETCH, 12)
    metrics.answered(produce_header, produce, produced, 100.0, 40)
    metrics.answered(fetch_header, fetch, fetched, 100.0, 40)
    waiting = metrics.waiting(produce_header, produce, 100.0, 100.0, 40)
    assert calls_of(lambda: metrics.answered(produce_header, produce, produced, 100.0, 40)) == 3
    assert calls_of(lambda: metrics.answered(fetch_header, fetch, fetched, 100.0, 40)) == 4
    assert calls_of(lambda: metrics.waiting(produce_header, produce, 100.0, 100.0, 40)) == 3
    assert calls_of(lambda: waiting.answered(produced)) == 3
