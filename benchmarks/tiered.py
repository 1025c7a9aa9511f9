"""Tiered storage of Moldau with an S3 server on the same machine (moto's; nothing leaves the machine).

A topic is filled, then tiered: its closed segments are copied and deleted locally. Cold reads go through a
plain connection that requests 1 MiB at a time, as consumers do by default, and are compared with the store's
own rate: `obstore.get_range` of 4 MiB at a time by one thread. Tail latency is that of single records in
another topic, from before they are sent until they are received, without and with a process that reads cold
data. A replica of the tiered topic on an empty broker takes the state of the remote tier and only the local
data.

The S3 server and the process that reads cold data would be on other machines: they run with a low priority
(nice), so that they do not take the CPU from the broker and the client that measures.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.brokers import Software
from benchmarks.processes import cpu_seconds
from benchmarks.workloads import Figures
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.wire.settings import ClientSettings
from moldau.local.ports import ReservedPorts
from moldau.network.client import NodeConnection
from moldau.testing import Cluster
from tests.harness.tiered.s3 import BUCKET, s3_configs
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import fetch_request, produce_request

_MEGABYTES = 512
_SEGMENT_BYTES = 64 << 20
_RECORD_BYTES = 10_000
_BATCH_RECORDS = 50
_READ_BYTES = 4 << 20
_FETCH_BYTES = 1 << 20
_NICE = 15
_TURNS = 3
_TAIL_SECONDS = 5.0
_TAIL_INTERVAL = 0.01
_OLD, _TAIL = "history", "tail"
_PRODUCE_VERSION = _FETCH_VERSION = 12
_DEADLINE_SECONDS = 600.0

COPY = "tiered: copy, MB/s"
COPY_CPU = "tiered: broker CPU s per GB copied"
STORE = "tiered: the store's own sequential reads, MB/s"
COLD = "tiered: cold reads, MB/s"
COLD_SHARE = "tiered: cold reads, share of the store's own rate"
TAIL = "tiered: tail latency p99 without a cold reader, ms"
TAIL_COLD = "tiered: tail latency p99 with a cold reader, ms"
TAIL_RATIO = "tiered: tail latency p99 with a cold reader, ratio"
REPLICA = "tiered: a new replica is in sync after, s"
FIGURES = (COPY, COPY_CPU, STORE, COLD, COLD_SHARE, TAIL, TAIL_COLD, TAIL_RATIO, REPLICA)


def measure(software: Software, share: float = 1.0, *, large: bool = False) -> Figures:
    """Measure Moldau; Apache Kafka has no store for production, so it has no figures."""
    if software.name != "moldau":
        return {}
    megabytes = 10_000 if large else round(_MEGABYTES * max(share, 0.5))
    with tempfile.TemporaryDirectory() as folder, _s3(Path(folder)) as endpoint:
        configs = s3_configs(endpoint, "bench")
        with Cluster(brokers=2, config=_config(configs)) as cluster:
            return _measure(cluster, configs, megabytes)


@contextmanager
def _s3(folder: Path) -> Iterator[str]:
    """Run an S3 server in a process of its own."""
    ports = ReservedPorts("127.0.0.1")
    endpoint = f"http://127.0.0.1:{ports.choose()}"
    server = subprocess.Popen(
        [
            "nice",
            "-n",
            str(_NICE),
            sys.executable,
            "-m",
            "moto.server",
            "-H",
            "127.0.0.1",
            "-p",
            endpoint.rpartition(":")[2],
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")

    def has_bucket() -> bool:
        try:
            with urllib.request.urlopen(request, timeout=10):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    try:
        eventually(has_bucket, timeout=60)
        yield endpoint
    finally:
        server.terminate()
        server.wait(30)
        ports.release()


def _config(store: dict[str, str]) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "moldau.tiered.stores.objects.ObjectStore",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "100",
        "log.segment.delete.delay.ms": "100",
        "offsets.topic.replication.factor": "1",
        **{f"rsm.config.{name}": text for name, text in store.items()},
    }


def _measure(cluster: Cluster, store: dict[str, str], megabytes: int) -> Figures:
    bootstrap = cluster.bootstrap_servers
    leader = cluster.brokers[0]
    _tool(bootstrap, "kafka-topics", "--create", "--topic", _OLD, "--replica-assignment", str(leader.id))
    _alter(bootstrap, f"segment.bytes={_SEGMENT_BYTES}")
    address = ("127.0.0.1", leader.port)
    asyncio.run(_fill(address, megabytes))
    figures = _copy(bootstrap, leader.pid)
    begin, end = 0, eventually(lambda: _local_start(bootstrap), timeout=_DEADLINE_SECONDS)
    figures[STORE] = _in_process(_read_store, store)
    figures[COLD] = _in_process(_read_cold, address, begin, end)
    figures[COLD_SHARE] = figures[COLD] / figures[STORE]
    figures[REPLICA] = _add_replica(bootstrap, [broker.id for broker in cluster.brokers])
    _tool(bootstrap, "kafka-topics", "--create", "--topic", _TAIL, "--replica-assignment", str(leader.id))
    return figures | _tail_latencies(address, begin, end)


def _tail_latencies(address: tuple[str, int], begin: int, end: int) -> Figures:
    """Measure alternately without and with a cold reader, because the machine is not always the same."""
    context = multiprocessing.get_context("spawn")
    reader = context.Process(target=_read_forever, args=(address, begin, end), daemon=True)
    reader.start()
    found: dict[str, list[float]] = {TAIL: [], TAIL_COLD: []}
    try:
        time.sleep(2)
        for _ in range(_TURNS):
            found[TAIL_COLD].append(asyncio.run(_tail(address)))
            if not reader.is_alive() or reader.pid is None:
                raise RuntimeError("the cold reader has failed")
            os.kill(reader.pid, signal.SIGSTOP)
            found[TAIL].append(asyncio.run(_tail(address)))
            os.kill(reader.pid, signal.SIGCONT)
    finally:
        reader.kill()
        reader.join()
    medians = {name: statistics.median(values) for name, values in found.items()}
    return {**medians, TAIL_RATIO: medians[TAIL_COLD] / medians[TAIL]}


def _tool(bootstrap: str, name: str, *words: str) -> None:
    run = run_tool(name, "--bootstrap-server", bootstrap, *words)
    if run.code:
        raise RuntimeError(f"{name} failed: {run.out}{run.err}")


def _alter(bootstrap: str, configs: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", _OLD)
    _tool(bootstrap, "kafka-configs", "--alter", *entity, "--add-config", configs)


# Copying.


async def _fill(address: tuple[str, int], megabytes: int) -> None:
    connection = await NodeConnection.connect(*address)
    value = os.urandom(_RECORD_BYTES)
    records = batch([(b"", value)] * _BATCH_RECORDS)
    pending: set[asyncio.Task[Any]] = set()
    for _ in range(megabytes * 1_000_000 // len(records) + 1):
        pending.add(asyncio.create_task(connection.call(produce_request(_OLD, records), _PRODUCE_VERSION)))
        if len(pending) >= 8:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*pending)
    connection.close()


def _copy(bootstrap: str, pid: int) -> Figures:
    """Tier the topic, and wait until its closed segments are copied."""
    before, began = cpu_seconds(pid), time.monotonic()
    _alter(bootstrap, "remote.storage.enable=true")
    expected = _offset(bootstrap, OffsetSpec.LATEST) - 1
    last = -1

    def is_copied() -> bool:
        nonlocal last
        tiered = _offset(bootstrap, OffsetSpec.LATEST_TIERED)
        pending = _offset(bootstrap, OffsetSpec.EARLIEST_PENDING_UPLOAD)
        done = tiered > 0 and tiered == last and pending == tiered + 1 and expected - tiered < _per_segment()
        last = tiered
        return done

    eventually(is_copied, timeout=_DEADLINE_SECONDS)
    took, cpu = time.monotonic() - began, cpu_seconds(pid) - before
    copied = (last + 1) * _RECORD_BYTES / 1e6
    _alter(bootstrap, "local.retention.bytes=1")
    return {COPY: copied / took, COPY_CPU: cpu / copied * 1000}


def _per_segment() -> int:
    return _SEGMENT_BYTES // _RECORD_BYTES + _BATCH_RECORDS


def _offset(bootstrap: str, spec: OffsetSpec) -> int:
    with AdminClient(ClientSettings.from_properties({"bootstrap.servers": bootstrap})) as admin:
        listed = admin.list_offsets({TopicPartition(_OLD, 0): spec})[TopicPartition(_OLD, 0)]
    return listed.offset if not isinstance(listed, Exception) else -1


def _local_start(bootstrap: str) -> int:
    """Return the first local offset; 0 until all copied segments are deleted."""
    start = _offset(bootstrap, OffsetSpec.EARLIEST_LOCAL)
    return start if start == _offset(bootstrap, OffsetSpec.LATEST_TIERED) + 1 else 0


# Reading.


def _in_process(work: Any, *arguments: Any) -> float:
    """Run a measurement in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        rate: float = pool.apply(work, arguments)
        return rate


def _read_store(configs: dict[str, str]) -> float:
    """Return the rate at which one thread reads all segments, in MB/s."""
    import obstore
    from obstore.store import from_url

    open_store: Any = from_url
    prefix = "store."
    options = {name.removeprefix(prefix): text for name, text in configs.items() if name.startswith(prefix)}
    store = open_store(configs["url"], config=options, client_options={"allow_http": "true"})
    objects = [each for chunk in obstore.list(store) for each in chunk if each["path"].endswith(".log")]
    began, total = time.monotonic(), 0
    for each in objects:
        for start in range(0, each["size"], _READ_BYTES):
            end = min(start + _READ_BYTES, each["size"])
            total += len(bytes(obstore.get_range(store, each["path"], start=start, end=end)))
    return total / (time.monotonic() - began) / 1e6


def _read_cold(address: tuple[str, int], begin: int, end: int) -> float:
    return asyncio.run(_cold(address, begin, end))


def _read_forever(address: tuple[str, int], begin: int, end: int) -> None:
    os.nice(_NICE)
    while True:
        asyncio.run(_cold(address, begin, end))


async def _cold(address: tuple[str, int], begin: int, end: int) -> float:
    """Read a range of offsets and return the rate in MB/s."""
    connection = await NodeConnection.connect(*address)
    began, total, offset = time.monotonic(), 0, begin
    while offset < end:
        request = fetch_request(_OLD, offset, max_bytes=_FETCH_BYTES, max_wait_ms=500)
        answer = (await connection.call(request, _FETCH_VERSION)).responses[0].partitions[0]
        if answer.error_code:
            raise RuntimeError(f"offset {offset} cannot be read: error {answer.error_code}")
        data = memoryview(answer.records or b"")
        total += len(data)
        offset = _next_offset(data, offset)
    connection.close()
    return total / (time.monotonic() - began) / 1e6


def _next_offset(data: memoryview, offset: int) -> int:
    """Return the offset after the batches, of which only length, first and last offset are read."""
    position = 0
    while position + 61 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        delta = int.from_bytes(data[position + 23 : position + 27], "big")
        offset = int.from_bytes(data[position : position + 8], "big") + delta + 1
        position += size
    return offset


async def _tail(address: tuple[str, int]) -> float:
    """Return the 99th percentile of the time until a record is received, in ms."""
    sender, receiver = await NodeConnection.connect(*address), await NodeConnection.connect(*address)
    sent: dict[int, float] = {}
    latencies: list[float] = []
    stop = time.monotonic() + _TAIL_SECONDS

    async def send() -> None:
        while time.monotonic() < stop:
            now = time.monotonic()
            records = batch([(b"", os.urandom(1000))])
            answer = await sender.call(produce_request(_TAIL, records, acks=1), _PRODUCE_VERSION)
            sent[answer.responses[0].partition_responses[0].base_offset] = now
            await asyncio.sleep(_TAIL_INTERVAL)

    sending = asyncio.create_task(send())
    arrived: dict[int, float] = {}
    first = await receiver.call(fetch_request(_TAIL, 0), _FETCH_VERSION)
    offset = first.responses[0].partitions[0].high_watermark
    while time.monotonic() < stop:
        answer = await receiver.call(fetch_request(_TAIL, offset, max_wait_ms=200), _FETCH_VERSION)
        following = _next_offset(memoryview(answer.responses[0].partitions[0].records or b""), offset)
        arrived.update(dict.fromkeys(range(offset, following), time.monotonic()))
        offset = following
    await sending
    latencies = [1000 * (arrived[each] - sent[each]) for each in sent if each in arrived]
    sender.close()
    receiver.close()
    return statistics.quantiles(latencies, n=100)[98]


# A new replica.


def _add_replica(bootstrap: str, brokers: list[int]) -> float:
    """Add a replica on the second broker and return the seconds until it is in sync."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
        json.dump({"version": 1, "partitions": [{"topic": _OLD, "partition": 0, "replicas": brokers}]}, plan)
        plan.flush()
        began = time.monotonic()
        _tool(bootstrap, "kafka-reassign-partitions", "--reassignment-json-file", plan.name, "--execute")

    def is_in_sync() -> bool:
        with AdminClient(ClientSettings.from_properties({"bootstrap.servers": bootstrap})) as admin:
            found = admin.describe_topics([_OLD])[_OLD]
        return not isinstance(found, Exception) and len(found.partitions[0].isr) == len(brokers)

    eventually(is_in_sync, timeout=_DEADLINE_SECONDS)
    return time.monotonic() - began
