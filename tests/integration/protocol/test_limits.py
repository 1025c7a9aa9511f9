"""Connections, memory and open files are bounded, and reaching a bound disturbs no other client."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from moldau.protocol.messages.metadata import MetadataRequest
from tests.harness.nodes.operator import OperatorNode
from tests.harness.nodes.process import ON_LINUX, anonymous_memory, limit_open_files, open_files
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import (
    PRODUCE_VERSION,
    assert_serves,
    create_and_wait,
    create_topic,
    fetch_request,
    produce,
    produce_request,
)
from tests.harness.wire.wire import Wire, request_frame
from tests.integration.conftest import StartNode

UNKNOWN_TOPIC_OR_PARTITION = 3
KAFKA_STORAGE_ERROR = 56

MEGABYTE = 1_000_000
linux_only = pytest.mark.skipif(
    not ON_LINUX, reason="memory and files of a process are read from Linux's /proc"
)


def answers(wire: Wire) -> bool:
    try:
        wire.call(MetadataRequest(topics=[]), 12)
    except (ConnectionError, BrokenPipeError):
        return False
    return True


def test_connections_per_address_are_limited(start_node: StartNode) -> None:
    node = start_node(config={"max.connections.per.ip": 5})
    wires = [Wire(node.bootstrap_servers) for _ in range(5)]
    assert all(answers(wire) for wire in wires)
    with Wire(node.bootstrap_servers) as one_too_many:
        assert not answers(one_too_many)
    assert all(answers(wire) for wire in wires), "existing connections are served"
    wires.pop().close()

    def connects_again() -> bool:
        with Wire(node.bootstrap_servers) as wire:
            return answers(wire)

    eventually(connects_again, what="a new connection is accepted")
    for wire in wires:
        wire.close()


def test_max_connections_per_ip_overrides_take_precedence(start_node: StartNode) -> None:
    node = start_node(
        config={"max.connections.per.ip": 2, "max.connections.per.ip.overrides": "127.0.0.1:10"}
    )
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(node.bootstrap_servers)) for _ in range(10)]
        assert all(answers(wire) for wire in wires)
        assert not answers(stack.enter_context(Wire(node.bootstrap_servers)))


def test_idle_connections_are_closed_and_busy_ones_stay(start_node: StartNode) -> None:
    node = start_node(config={"connections.max.idle.ms": 4000})
    with Wire(node.bootstrap_servers) as idle, Wire(node.bootstrap_servers) as busy:
        assert answers(idle)
        while idle.is_silent_for(0.3):
            assert answers(busy)
        assert idle.is_closed_by_peer()
        assert answers(busy)


def test_idle_and_half_open_connections_disturb_no_other_client(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    frame = request_frame(MetadataRequest(topics=[]), 12)
    wires = [Wire(bootstrap) for _ in range(300)]
    for n, wire in enumerate(wires):
        if n % 2:
            wire.send(b"\x00\x00\x10\x00" + frame[:5])
    assert_serves(bootstrap, topic)
    for wire in wires:
        wire.abort()
    assert_serves(bootstrap, topic)


@linux_only
def test_consumers_that_never_read_do_not_grow_the_memory(start_node: StartNode, topic: str) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic)
    for _ in range(40):
        assert produce(node.bootstrap_servers, topic, batch([(b"k", bytes(MEGABYTE))])).error_code == 0
    before = anonymous_memory(node.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(Wire(node.bootstrap_servers, receive_buffer=4096))
            for _ in range(50):
                wire.post(fetch_request(topic), 12)
        peak = before
        for _ in range(20):
            time.sleep(0.1)
            peak = max(peak, anonymous_memory(node.pid))
        assert_serves(node.bootstrap_servers, topic)
    assert peak - before < 150 * MEGABYTE, f"{(peak - before) / MEGABYTE:.0f} MB more"


@linux_only
def test_a_client_that_sends_and_never_reads_is_stopped_by_back_pressure(
    start_node: StartNode, topic: str
) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic, partitions=100)
    before = anonymous_memory(node.pid)
    frame = request_frame(MetadataRequest(topics=None), 12)
    flood = (len(frame).to_bytes(4, "big") + frame) * 1000
    sent = 0
    with Wire(node.bootstrap_servers, timeout=2, receive_buffer=4096) as wire:
        with contextlib.suppress(TimeoutError):
            while sent < 200 * MEGABYTE:
                wire.send(flood)
                sent += len(flood)
        assert sent < 200 * MEGABYTE, "the node must stop reading from a client that does not read"
        assert_serves(node.bootstrap_servers, topic)
        grown = anonymous_memory(node.pid) - before
    assert grown < 100 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB more"


@linux_only
def test_announced_frames_that_never_arrive_use_no_memory(
    start_node: StartNode, topic: str, on_moldau: bool
) -> None:
    if not on_moldau:
        pytest.skip("Apache Kafka allocates memory for every announced frame")
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic)
    before = anonymous_memory(node.pid)
    wires = [Wire(node.bootstrap_servers) for _ in range(20)]
    for wire in wires:
        wire.send((100 * MEGABYTE).to_bytes(4, "big") + bytes(10_000))
    time.sleep(0.3)
    grown = anonymous_memory(node.pid) - before
    assert_serves(node.bootstrap_servers, topic)
    for wire in wires:
        wire.abort()
    assert grown < 100 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB for 20 announcements of 100 MB"


@linux_only
def test_running_out_of_file_descriptors_by_connections_is_survived(
    start_node: StartNode, topic: str
) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic)
    assert_serves(node.bootstrap_servers, topic)
    limit_open_files(node.pid, open_files(node.pid) + 10)
    wires: list[Wire] = []
    with contextlib.suppress(TimeoutError, ConnectionError):
        while len(wires) < 60:
            wires.append(Wire(node.bootstrap_servers, timeout=1))
    time.sleep(0.5)
    for wire in wires:
        wire.close()

    def serves_again() -> bool:
        try:
            assert_serves(node.bootstrap_servers, topic)
        except (ConnectionError, TimeoutError):
            return False
        return True

    eventually(serves_again, what="the node serves again after the connections are closed")
    assert node.running


@pytest.mark.parametrize("limit", [64, 128])
def test_running_out_of_file_descriptors_by_partitions_is_survived(
    tmp_path: Path, limit: int, on_moldau: bool
) -> None:
    if not on_moldau:
        pytest.skip("Apache Kafka takes the whole folder offline and stops")
    node = OperatorNode(tmp_path)
    node.format()
    node.start(open_files=limit)
    try:
        create_and_wait(node.bootstrap_servers, "one")
        assert create_topic(node.bootstrap_servers, "many", partitions=300).error_code == 0
        codes: set[int] = set()
        with Wire(node.bootstrap_servers) as wire:
            for partition in range(300):
                response = wire.call(produce_request("many", batch(), partition=partition), PRODUCE_VERSION)
                codes.add(response.responses[0].partition_responses[0].error_code)
        assert codes <= {0, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR}
        assert_serves(node.bootstrap_servers, "one")
        for partition in range(300):
            eventually(
                lambda p=partition: (
                    produce(node.bootstrap_servers, "many", batch(), partition=p).error_code == 0
                ),
                what=f"partition {partition} takes records (codes before: {codes})",
            )
        assert node.running
    finally:
        node.stop()
