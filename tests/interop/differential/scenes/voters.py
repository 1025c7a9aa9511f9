"""Adding, updating and removing voters.

The scene acts as the second voter: it fetches the log like a follower and has the address of the
node itself, so that the leader can connect to it.
"""

from __future__ import annotations

from typing import Any

from moldau.base.ids import METADATA_TOPIC_ID, ZERO_UUID
from moldau.protocol.messages import add_raft_voter, update_raft_voter
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.records import BATCH_HEADER_SIZE, read_batch_header
from moldau.protocol.schema import Message
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker
from tests.interop.differential.scenes.quorum import NODE, STRANGER, STRANGERS_DIRECTORY, Quorum


class Follower:
    """A follower of the metadata log."""

    def __init__(self, broker: Broker, quorum: Quorum) -> None:
        self._broker = broker
        self._quorum = quorum
        self._offset = self._epoch = 0

    def fetch(self) -> bool:
        """Fetch once; return whether there was nothing new."""
        part = FetchPartition(
            partition=0,
            fetch_offset=self._offset,
            last_fetched_epoch=self._epoch,
            current_leader_epoch=self._quorum.epoch,
            partition_max_bytes=1 << 20,
            replica_directory_id=STRANGERS_DIRECTORY,
            high_watermark=0,
        )
        request = FetchRequest(
            cluster_id=self._quorum.cluster_id,
            replica_state=ReplicaState(replica_id=STRANGER),
            topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[part])],
        )
        answer = self._broker.call(request, 18, controller=True).responses[0].partitions[0]
        assert answer.error_code == 0, answer
        if answer.snapshot_id.end_offset > 0:
            # Treat the snapshot as fetched.
            self._offset, self._epoch = answer.snapshot_id.end_offset, answer.snapshot_id.epoch
            return False
        data = bytes(answer.records or b"")
        position = 0
        while position + BATCH_HEADER_SIZE <= len(data):
            header = read_batch_header(data, position)
            self._offset = header.base_offset + header.last_offset_delta + 1
            self._epoch = header.partition_leader_epoch
            position += header.size_in_bytes
        return not data

    def fetch_until_answered(
        self, label: str, request: Message, version: int, *, controller: bool = True
    ) -> None:
        """Fetch until the request is answered, so that its change can be committed."""
        line = self._broker.line(controller=controller)
        line.post(request, version)
        for _ in range(200):
            self.fetch()
            if not line.wire.is_silent_for(0.05):
                break
        self._quorum.note(label, line.answer())


def adding(quorum: Quorum, port: int, **fields: Any) -> add_raft_voter.AddRaftVoterRequest:
    name = fields.pop("listener", "CONTROLLER")
    asked = {
        "cluster_id": quorum.cluster_id,
        "timeout_ms": 10_000,
        "voter_id": STRANGER,
        "voter_directory_id": STRANGERS_DIRECTORY,
        "listeners": [add_raft_voter.Listener(name=name, host="127.0.0.1", port=port)],
        **fields,
    }
    return add_raft_voter.AddRaftVoterRequest(**asked)


def updating(quorum: Quorum, port: int, **fields: Any) -> update_raft_voter.UpdateRaftVoterRequest:
    name = fields.pop("listener", "CONTROLLER")
    low, high = fields.pop("kraft", (0, 1))
    asked = {
        "cluster_id": quorum.cluster_id,
        "current_leader_epoch": quorum.epoch,
        "voter_id": STRANGER,
        "voter_directory_id": STRANGERS_DIRECTORY,
        "listeners": [update_raft_voter.Listener(name=name, host="127.0.0.1", port=port)],
        **fields,
    }
    feature = update_raft_voter.KRaftVersionFeature(min_supported_version=low, max_supported_version=high)
    return update_raft_voter.UpdateRaftVoterRequest(kraft_version_feature=feature, **asked)


def removing(quorum: Quorum, **fields: Any) -> RemoveRaftVoterRequest:
    asked = {"cluster_id": quorum.cluster_id, "voter_id": STRANGER, **fields}
    return RemoveRaftVoterRequest(**{"voter_directory_id": STRANGERS_DIRECTORY, **asked})


def refused(broker: Broker) -> None:
    """Invalid changes, on both listeners if both serve the API."""
    quorum, port = Quorum(broker), broker.controller_port

    def ask(label: str, request: Message, version: int = 0, *, controller: bool = True) -> None:
        where = "controller" if controller else "broker"
        answer = broker.call(request, version, controller=controller)
        quorum.note(f"v{version} {where} {type(request).__name__} {label}", answer)

    for controller in (True, False):
        for version in (0, 1):
            for label, fields in (
                ("another cluster", {"cluster_id": "nobody"}),
                ("nobody", {"voter_id": -1}),
                ("no directory", {"voter_directory_id": ZERO_UUID}),
                ("no listeners", {"listeners": []}),
                ("another listener", {"listener": "NOBODY"}),
                ("an existing voter", {"voter_id": NODE}),
            ):
                ask(label, adding(quorum, port, **fields), version, controller=controller)
        for label, fields in (
            ("another cluster", {"cluster_id": "nobody"}),
            ("no cluster", {"cluster_id": None}),
            ("nobody", {"voter_id": -1}),
            ("no directory", {"voter_directory_id": ZERO_UUID}),
            ("a stranger", {}),
            ("another directory", {"voter_id": NODE}),
        ):
            ask(label, removing(quorum, **fields), controller=controller)
    for label, fields in (
        ("another cluster", {"cluster_id": "nobody"}),
        ("an old epoch", {"current_leader_epoch": quorum.epoch - 1}),
        ("a future epoch", {"current_leader_epoch": quorum.epoch + 1}),
        ("nobody", {"voter_id": -1}),
        ("a stranger", {}),
        ("no directory", {"voter_directory_id": ZERO_UUID}),
        ("another directory", {"voter_id": NODE}),
        ("no listeners", {"listeners": []}),
        ("another listener", {"listener": "NOBODY"}),
        ("negative versions", {"kraft": (-1, 1)}),
        ("a minimum version above the maximum", {"kraft": (1, 0)}),
        ("an old version", {"kraft": (0, 0)}),
    ):
        ask(label, updating(quorum, port, **fields))


def voter_changes(broker: Broker) -> None:
    quorum, port = Quorum(broker), broker.controller_port
    follower = Follower(broker, quorum)

    def voters(label: str) -> None:
        quorum.note(label, [voter.replica_id for voter in quorum.describe().current_voters])

    for version, controller in ((0, True), (1, True), (0, False), (1, False)):
        eventually(follower.fetch, what="the end of the log")
        eventually(follower.fetch, what="the end of the log")
        follower.fetch_until_answered(
            f"v{version} added", adding(quorum, port), version, controller=controller
        )
        voters(f"v{version} voters then")
        follower.fetch_until_answered(f"v{version} added again", adding(quorum, port), version)
        follower.fetch_until_answered("moved", updating(quorum, port), 0)
        eventually(follower.fetch, what="the end of the log")
        follower.fetch_until_answered("removed", removing(quorum), 0, controller=controller)
        voters(f"v{version} voters afterwards")
    follower.fetch_until_answered("removed again", removing(quorum), 0)


SCENES = {
    "quorum, invalid voter changes": refused,
    "quorum, voter changes": voter_changes,
}
