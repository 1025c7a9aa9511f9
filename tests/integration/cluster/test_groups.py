"""Groups of three brokers continue when their coordinator is killed."""

from __future__ import annotations

import time

import pytest

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.testing import Cluster
from moldau.testing.cluster import ClusterNode
from tests.harness.clients.feed import Feed, create
from tests.harness.clients.members import MEMBERS, Member, Progress
from tests.harness.nodes.leaders import coordinator_of
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

BATCH = 300
ROUNDS = 6

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    # A paused broker is fenced soon.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_group_continues_when_its_coordinator_is_killed(cluster: Cluster, topic: str, kind: str) -> None:
    create(cluster, topic)
    feed, progress = Feed(cluster, topic), Progress()
    member = MEMBERS[kind](cluster, topic, f"group-of-{topic}")
    try:
        for step in range(ROUNDS):
            feed.more(BATCH)
            read_and_commit(member, progress, feed.sent)
            if step in (1, 3):
                victim = coordinator_of(cluster, f"group-of-{topic}")
                cluster.kill(victim)
            elif step == 2:
                cluster.start()
        found = member.committed()
        assert found == progress.committed
        assert sum(found.values()) == feed.sent
    finally:
        member.close()


def read_and_commit(member: Member, progress: Progress, wanted: int) -> None:
    """Read until all records are read and committed."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        member.poll(progress)
        if progress.positions != progress.committed and member.commit(progress.positions):
            progress.stored()
        if len(progress.seen) == wanted and sum(progress.committed.values()) == wanted:
            return
    raise AssertionError(f"{len(progress.seen)} of {wanted} read, {progress.committed} committed")


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_a_paused_coordinator_is_fenced_when_it_resumes(cluster: Cluster, topic: str, kind: str) -> None:
    group = f"group-of-{topic}"
    create(cluster, topic)
    feed, progress = Feed(cluster, topic), Progress()
    member = MEMBERS[kind](cluster, topic, group)
    try:
        feed.more(BATCH)
        read_and_commit(member, progress, feed.sent)
        zombie = coordinator_of(cluster, group)
        cluster.pause(zombie)
        try:
            eventually(lambda: coordinator_of(cluster, group) != zombie)
            feed.more(BATCH)
            read_and_commit(member, progress, feed.sent)
        finally:
            cluster.resume(zombie)
        cluster.wait_for_brokers()
        feed.more(BATCH)
        read_and_commit(member, progress, feed.sent)
        # It is a follower now and must answer NOT_COORDINATOR, whatever state it has in memory.
        assert described_by(cluster.node(zombie), group) == ErrorCode.NOT_COORDINATOR
        assert member.committed() == progress.committed
    finally:
        member.close()


def described_by(node: ClusterNode, group: str) -> int:
    (found,) = Wire(f"127.0.0.1:{node.port}").call(DescribeGroupsRequest(groups=[group]), 6).groups
    return int(found.error_code)
