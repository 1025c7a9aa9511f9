"""Scale: reading from the start of a long and of a short topic, and the cost of many partitions.

Each is measured once, on its own node.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.brokers import Broker, Software
from benchmarks.processes import cpu_seconds
from benchmarks.workloads import Figures
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    create_and_wait,
    fetch_request,
    produce_request,
)
from tests.harness.wire.wire import Wire

PARTITIONS = 2000
_SHORT_MB = 10
_BATCH_MB = 1
_IN_FLIGHT = 5
_READS = 300
_IDLE_SECONDS = 5.0


def long_topic(software: Software, gigabytes: float) -> Figures:
    """Measure fetches of 1 MB from the start of a short and of a long topic, alternately."""
    short, long = f"{_SHORT_MB} MB", f"{gigabytes:g} GB"
    with Broker(software) as broker:
        broker.first_start()
        _fill(broker.bootstrap, "short", _SHORT_MB)
        _fill(broker.bootstrap, "long", int(gigabytes * 1000))
        taken: dict[str, list[float]] = {"short": [], "long": []}
        with Wire(broker.bootstrap) as wire:
            for _ in range(_READS):
                for topic, times in taken.items():
                    times.append(_read_start(wire, topic))
        broker.stop()
        restart = broker.start()
    return {
        f"fetch 1 MB from the start of {short}, ms": statistics.median(taken["short"]) * 1e3,
        f"fetch 1 MB from the start of {long}, ms": statistics.median(taken["long"]) * 1e3,
        f"restart with {long}, s": restart,
    }


def many_partitions(software: Software) -> Figures:
    with Broker(software) as broker:
        broker.first_start()
        before = broker.memory()
        begin = time.monotonic()
        create_and_wait(broker.bootstrap, "many", PARTITIONS)
        created = time.monotonic() - begin
        memory = broker.memory() - before
        cpu = cpu_seconds(broker.pid)
        time.sleep(_IDLE_SECONDS)
        idle = (cpu_seconds(broker.pid) - cpu) / _IDLE_SECONDS
        stopped = broker.stop()
        clean = broker.start("many", PARTITIONS - 1)
        broker.kill()
        killed = broker.start("many", PARTITIONS - 1)
    many = f"{PARTITIONS:,} partitions"
    return {
        f"{many}: created, s": created,
        f"{many}: memory of each, KB": memory / PARTITIONS * 1e3,
        f"{many}: CPU when idle, % of a core": idle * 100,
        f"{many}: orderly stop, s": stopped,
        f"{many}: restart to first acknowledged record, s": clean,
        f"{many}: restart after kill -9, s": killed,
    }


def _fill(bootstrap: str, topic: str, megabytes: int) -> None:
    """Produce batches of 1 MB with several requests in flight, like a client."""
    create_and_wait(bootstrap, topic)
    records = batch([(None, b"x" * 1000)] * (_BATCH_MB * 1000 - 30))
    request = produce_request(topic, records, acks=1)
    waiting: list[int] = []
    with Wire(bootstrap, timeout=60) as wire:
        for _ in range(megabytes // _BATCH_MB):
            waiting.append(wire.post(request, PRODUCE_VERSION))
            if len(waiting) >= _IN_FLIGHT:
                _check(wire.answer(request, PRODUCE_VERSION, waiting.pop(0)))
        for correlation_id in waiting:
            _check(wire.answer(request, PRODUCE_VERSION, correlation_id))


def _check(response: object) -> None:
    answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    if answer.error_code != 0:
        raise RuntimeError(f"a batch was rejected: {answer}")


def _read_start(wire: Wire, topic: str) -> float:
    begin = time.monotonic()
    answer = wire.call(fetch_request(topic, 0, max_bytes=1_000_000), FETCH_VERSION)
    taken = time.monotonic() - begin
    if not answer.responses[0].partitions[0].records:
        raise RuntimeError(f"nothing at the start of {topic}")
    return taken
