"""The metadata quorum's own requests: votes, epochs, the log and its snapshots, changes of voters.

They change the leader, so they need their own node. Epochs are recorded relative to the first one, offsets
only as known or unknown: the number of elections and the length of the log may differ.
"""

from __future__ import annotations

import itertools
from typing import Any

from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from moldau.protocol.messages import begin_quorum_epoch, end_quorum_epoch, fetch_snapshot, vote
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from moldau.protocol.schema import Message, Struct
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker

NODE = 1
STRANGER = 9
STRANGERS_DIRECTORY = bytes(range(1, 17))
_EPOCHS = frozenset({"leader_epoch", "epoch"})
_OFFSETS = frozenset({"high_watermark", "last_stable_offset", "end_offset", "size", "log_end_offset"})


class Quorum:
    """The state of the quorum, for a scene."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.cluster_id = broker.call(DescribeClusterRequest(), 1).cluster_id
        self._first_epoch = 0
        self._first_epoch = self.epoch

    def describe(self) -> Any:
        partition = RequestPartitionData(partition_index=0)
        topic = RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        answer = self._broker.call(DescribeQuorumRequest(topics=[topic]), 2, controller=True)
        return answer.topics[0].partitions[0]

    @property
    def epoch(self) -> int:
        """Wait for a leader and return its epoch."""
        described = eventually(
            lambda: found if (found := self.describe()).error_code == 0 else None, what="a leader"
        )
        return int(described.leader_epoch)

    @property
    def directory_id(self) -> Any:
        (voter,) = (each for each in self.describe().current_voters if each.replica_id == NODE)
        return voter.replica_directory_id

    def latest_snapshot(self) -> Any:
        """Return the snapshot id in the response to a fetch from an invalid offset; wait until one exists."""
        numbers = itertools.count()

        def found() -> Any:
            part = FetchPartition(
                partition=0,
                fetch_offset=0,
                last_fetched_epoch=self.epoch,
                current_leader_epoch=self.epoch,
                partition_max_bytes=1000,
            )
            topics = [FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[part])]
            request = FetchRequest(cluster_id=self.cluster_id, topics=topics)
            answer = self._broker.call(request, 17, controller=True).responses[0].partitions[0]
            if answer.snapshot_id.end_offset > 0:
                return answer.snapshot_id
            self._broker.topic(f"for-a-snapshot-{next(numbers)}")
            return None

        return eventually(found, what="a snapshot", every=0.5)

    def ask(self, label: str, request: Message, version: int) -> Any:
        answer = self._broker.call(request, version, controller=True)
        self.note(label, answer)
        return answer

    def note(self, label: str, answer: Any) -> None:
        self._broker.note(label, self._comparable(answer))

    def _comparable(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Struct):
            return {
                each.name: self._comparable(getattr(value, each.name), each.name) for each in value.FIELDS
            }
        if isinstance(value, list | tuple):
            return [self._comparable(each, name) for each in value]
        if name in _EPOCHS and value > 0:
            return f"epoch {value - self._first_epoch:+}"
        if name in _OFFSETS and value > 0:
            return "known"
        if name in ("records", "unaligned_records"):
            return "some" if value else value if value is None else "none"
        return self._broker.plain(value, name)


def votes(broker: Broker) -> None:
    """Pre-votes and votes sent to a leader; a vote in a higher epoch makes it a candidate again."""
    quorum = Quorum(broker)

    def ask(label: str, version: int, epoch: int, **fields: Any) -> Any:
        cluster_id = fields.pop("cluster_id", quorum.cluster_id)
        topic = fields.pop("topic", METADATA_TOPIC)
        voter_id = fields.pop("voter_id", NODE)
        asked = {"replica_id": STRANGER, "last_offset_epoch": 1, "last_offset": 10**9, **fields}
        if version < 2:
            asked.pop("pre_vote", None)
        if version >= 1:
            asked.setdefault("voter_directory_id", quorum.directory_id)
            asked.setdefault("replica_directory_id", STRANGERS_DIRECTORY)
        data = vote.RequestPartitionData(replica_epoch=epoch, **asked)
        topics = [vote.RequestTopicData(topic_name=topic, partitions=[data])]
        request = vote.VoteRequest(cluster_id=cluster_id, voter_id=voter_id, topics=topics)
        return quorum.ask(f"v{version} {label}", request, version)

    for version in (0, 1, 2):
        now = quorum.epoch
        ask("another cluster", version, now, cluster_id="nobody")
        ask("no cluster", version, now, cluster_id=None)
        ask("another topic", version, now, topic="nobody")
        ask("another partition", version, now, partition_index=1)
        ask("an old epoch", version, now - 1, last_offset_epoch=0)
        ask("a log with the leader's epoch", version, now, last_offset_epoch=now)
        ask("a negative offset", version, now, last_offset=-1)
        ask("a negative last epoch", version, now, last_offset_epoch=-1)
        ask("a negative replica", version, now, replica_id=-1)
        ask("the leader itself, its epoch", version, now, replica_id=NODE, last_offset_epoch=0)
        ask("another's epoch", version, now, last_offset_epoch=0)
        if version >= 1:
            ask("for another voter", version, now, voter_id=STRANGER, last_offset_epoch=0)
            ask("for another directory", version, now, voter_directory_id=STRANGERS_DIRECTORY,
                last_offset_epoch=0)  # fmt: skip
            ask("for no directory", version, now, voter_directory_id=ZERO_UUID, last_offset_epoch=0)
        quorum.note(f"v{version} nothing", broker.call(vote.VoteRequest(), version, controller=True))
    now = quorum.epoch
    ask("a pre-vote in the leader's epoch", 2, now, pre_vote=True)
    ask("a pre-vote for another voter", 2, now, pre_vote=True, voter_id=STRANGER)
    ask("a pre-vote in an old epoch", 2, now - 1, pre_vote=True, last_offset_epoch=0)
    ask("a vote in the next epoch, with an old log", 2, now + 1, last_offset_epoch=0, last_offset=1)
    eventually(lambda: quorum.describe().leader_epoch > now + 1, what="a new epoch")
    now = quorum.epoch
    ask("a vote in a higher epoch, with a newer log", 2, now + 5, last_offset_epoch=now + 4)
    eventually(lambda: quorum.describe().leader_epoch > now + 5, what="a new epoch")


def epochs(broker: Broker) -> None:
    """BeginQuorumEpoch and EndQuorumEpoch sent to a leader; two leaders in an epoch would stop Apache."""
    quorum = Quorum(broker)

    def begin(label: str, version: int, **fields: Any) -> None:
        cluster_id = fields.pop("cluster_id", quorum.cluster_id)
        topic = fields.pop("topic", METADATA_TOPIC)
        voter_id = fields.pop("voter_id", NODE)
        asked = {"leader_id": NODE, "leader_epoch": quorum.epoch, **fields}
        if version >= 1:
            asked.setdefault("voter_directory_id", quorum.directory_id)
        data = begin_quorum_epoch.RequestPartitionData(**asked)
        topics = [begin_quorum_epoch.RequestTopicData(topic_name=topic, partitions=[data])]
        request = begin_quorum_epoch.BeginQuorumEpochRequest(
            cluster_id=cluster_id, voter_id=voter_id, topics=topics
        )
        quorum.ask(f"v{version} begin, {label}", request, version)

    def end(label: str, version: int, **fields: Any) -> None:
        cluster_id = fields.pop("cluster_id", quorum.cluster_id)
        topic = fields.pop("topic", METADATA_TOPIC)
        data = end_quorum_epoch.RequestPartitionData(
            **{"leader_id": NODE, "leader_epoch": quorum.epoch, **fields}
        )
        topics = [end_quorum_epoch.RequestTopicData(topic_name=topic, partitions=[data])]
        request = end_quorum_epoch.EndQuorumEpochRequest(cluster_id=cluster_id, topics=topics)
        quorum.ask(f"v{version} end, {label}", request, version)

    for version in (0, 1):
        for say in (begin, end):
            say("its own epoch", version)
            say("another cluster", version, cluster_id="nobody")
            say("no cluster", version, cluster_id=None)
            say("another topic", version, topic="nobody")
            say("another partition", version, partition_index=3)
            say("an old epoch", version, leader_epoch=quorum.epoch - 1)
            say("a negative leader", version, leader_id=-1)
        for message in (
            begin_quorum_epoch.BeginQuorumEpochRequest(),
            end_quorum_epoch.EndQuorumEpochRequest(),
        ):
            answer = broker.call(message, version, controller=True)
            quorum.note(f"v{version} {type(message).__name__} with nothing", answer)
    begin("for another voter", 1, voter_id=STRANGER)
    begin("for another directory", 1, voter_directory_id=STRANGERS_DIRECTORY)


def metadata_log(broker: Broker) -> None:
    """The log as followers and observers read it, once there is a snapshot."""
    quorum = Quorum(broker)
    quorum.latest_snapshot()

    def ask(label: str, version: int, *, replica: int = -1, **fields: Any) -> Any:
        cluster_id = fields.pop("cluster_id", quorum.cluster_id)
        topic_id = fields.pop("topic_id", METADATA_TOPIC_ID)
        topic = fields.pop("topic", METADATA_TOPIC)
        asked = {"partition_max_bytes": 1000, "last_fetched_epoch": 0, **fields}
        asked.setdefault("current_leader_epoch", quorum.epoch)
        part = FetchPartition(**{"partition": 0, "fetch_offset": 0, **asked})
        request = FetchRequest(
            cluster_id=cluster_id,
            max_wait_ms=100,
            max_bytes=10_000,
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])],
        )
        if version >= 15:
            request.replica_state = ReplicaState(replica_id=replica)
        else:
            request.replica_id = replica
        return quorum.ask(f"v{version} {label}", request, version)

    for version in (4, 11, 12, 13, 16, 17, 18):
        now = quorum.epoch
        for replica in (-1, STRANGER):
            who = "a replica" if replica == STRANGER else "an onlooker"
            if version < 12:
                ask(f"{who} of old", version, replica=replica, last_fetched_epoch=-1)
                continue
            ask(f"{who}, from the start", version, replica=replica)
            ask(f"{who}, another cluster", version, replica=replica, cluster_id="nobody")
            ask(f"{who}, no cluster", version, replica=replica, cluster_id=None)
            ask(f"{who}, an old epoch", version, replica=replica, current_leader_epoch=now - 1)
            ask(f"{who}, a future epoch", version, replica=replica, current_leader_epoch=now + 1)
            ask(f"{who}, after the end", version, replica=replica, fetch_offset=10**9, last_fetched_epoch=now)
            ask(f"{who}, a future epoch", version, replica=replica, fetch_offset=10,
                last_fetched_epoch=now + 3)  # fmt: skip
            ask(f"{who}, a negative offset", version, replica=replica, fetch_offset=-1)
            ask(f"{who}, no last epoch", version, replica=replica, last_fetched_epoch=-1)
            if version >= 13:
                ask(f"{who}, another topic", version, replica=replica, topic_id=bytes(range(16)))
            else:
                ask(f"{who}, another topic", version, replica=replica, topic="nobody")
            ask(f"{who}, another partition", version, replica=replica, partition=2)


def snapshots(broker: Broker) -> None:
    """Fetch the latest snapshot in chunks."""
    quorum = Quorum(broker)

    there = quorum.latest_snapshot()

    def ask(label: str, version: int, **fields: Any) -> None:
        cluster_id = fields.pop("cluster_id", quorum.cluster_id)
        name = fields.pop("name", METADATA_TOPIC)
        max_bytes = fields.pop("max_bytes", 10_000)
        wanted = fetch_snapshot.SnapshotId(end_offset=there.end_offset, epoch=there.epoch)
        data = fetch_snapshot.RequestPartitionSnapshot(
            **{"snapshot_id": wanted, "current_leader_epoch": quorum.epoch, **fields}
        )
        topics = [fetch_snapshot.RequestTopicSnapshot(name=name, partitions=[data])]
        request = fetch_snapshot.FetchSnapshotRequest(
            cluster_id=cluster_id, replica_id=STRANGER, max_bytes=max_bytes, topics=topics
        )
        quorum.ask(f"v{version} {label}", request, version)

    for version in (0, 1):
        ask("the latest", version)
        ask("its first bytes", version, max_bytes=70)
        ask("from its middle", version, position=61)
        ask("another cluster", version, cluster_id="nobody")
        ask("no cluster", version, cluster_id=None)
        ask("another topic", version, name="nobody")
        ask("another partition", version, partition=4)
        ask("an old epoch", version, current_leader_epoch=quorum.epoch - 1)
        ask("a future epoch", version, current_leader_epoch=quorum.epoch + 1)
        ask("a negative position", version, position=-1)
        ask("after its end", version, position=10**9)
        ask("an unknown snapshot", version, snapshot_id=fetch_snapshot.SnapshotId(end_offset=3, epoch=1))
        ask("a snapshot at offset 0", version, snapshot_id=fetch_snapshot.SnapshotId(end_offset=0, epoch=0))


SCENES = {
    "quorum, votes": votes,
    "quorum, epochs": epochs,
    "quorum, the log": metadata_log,
    "quorum, snapshots": snapshots,
}
