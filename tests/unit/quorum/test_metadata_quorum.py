"""The first start and restarts of a metadata quorum, and folders of Apache Kafka."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from moldau.base.ids import ZERO_UUID, parse_uuid
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from moldau.protocol.stored.metadata import BeginTransactionRecord, EndTransactionRecord, TopicRecord
from moldau.quorum.batches import Batch, data_batch, read_batches
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.snapshots import SnapshotId
from moldau.raft.voters import VoterEndpoint
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import (
    Node,
    create,
    image_on_disk,
    run,
    with_broker,
)

DATA = Path(__file__).parent / "data"
FIRST_SEGMENT = "00000000000000000000.log"


def batches(node: Node, segment: str = FIRST_SEGMENT) -> list[Batch]:
    return list(read_batches((node.log_folder / segment).read_bytes()))


def apache_node(tmp_path: Path, kind: str, **settings: object) -> Node:
    shutil.copytree(DATA / kind, tmp_path / "__cluster_metadata-0")
    return Node(tmp_path, **settings)


class TestFirstStart:
    def test_dynamic_quorum_writes_the_records_of_apache_kafka(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                assert (quorum.leader_id, quorum.leader_epoch) == (1, 1)
                assert quorum.image.features.metadata_version == 30
                assert quorum.high_watermark == quorum.log_end_offset == quorum.image.offset + 1
                assert quorum.voters.ids == [1] and quorum.kraft_version == 1

        run(test)
        control, data = batches(node)
        kinds = [type(message) for message in control.control]
        assert kinds == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
        assert type(data.records[0]) is BeginTransactionRecord
        assert type(data.records[-1]) is EndTransactionRecord
        assert {batch.header.partition_leader_epoch for batch in (control, data)} == {1}
        assert (node.log_folder / "quorum-state").read_text().startswith('{"leaderId":1,"leaderEpoch":1,')
        assert (node.log_folder / "partition.metadata").exists()
        assert (node.log_folder / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"

    def test_static_quorum_writes_no_voters_record(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                assert (quorum.kraft_version, quorum.voters.ids) == (0, [1])
                assert quorum.directory_id == ZERO_UUID

        run(test)
        assert [type(message) for message in batches(node)[0].control] == [LeaderChangeMessage]
        assert (
            '"currentVoters":[{"voterId":1}],"data_version":0}'
            in (node.log_folder / "quorum-state").read_text()
        )

    def test_formatted_feature_levels_are_applied(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format(levels={"group.version": 1, "metadata.version": 28})

        async def test() -> None:
            async with node.running() as quorum:
                assert quorum.image.features.level("group.version") == 1
                assert quorum.image.features.metadata_version == 28

        run(test)


class TestRestart:
    def test_restart_increments_the_epoch_and_keeps_the_metadata(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()
        images: list[MetadataImage] = []

        async def test() -> None:
            for _ in range(3):
                async with node.running() as quorum:
                    await with_broker(quorum)
                    await create(quorum, f"topic-{quorum.leader_epoch}")
                    images.append(quorum.image)

        run(test)
        assert [image.epoch for image in images] == [1, 2, 3]
        assert sorted(images[-1].topics.by_name) == ["topic-1", "topic-2", "topic-3"]
        assert (node.log_folder / "leader-epoch-checkpoint").read_text().startswith("0\n3\n1 0\n2 ")

    @pytest.mark.parametrize(
        ("leader", "voted", "epoch"),
        [(1, -1, 42), (-1, 1, 41), (-1, 2, 42)],
        ids=["leader", "candidate", "voted for another"],
    )
    def test_epoch_of_quorum_state_counts_with_an_empty_log(
        self, tmp_path: Path, leader: int, voted: int, epoch: int
    ) -> None:
        node = Node(tmp_path)
        node.format()
        node.log_folder.mkdir(exist_ok=True)
        fields = {
            "leaderId": leader,
            "leaderEpoch": 41,
            "votedId": voted,
            "votedDirectoryId": "A" * 22,
            "data_version": 1,
        }
        (node.log_folder / "quorum-state").write_text(json.dumps(fields))

        async def test() -> None:
            async with node.running() as quorum:
                assert quorum.leader_epoch == epoch

        run(test)

    def test_changed_endpoints_are_written_at_the_epoch_start(self, tmp_path: Path) -> None:
        Node(tmp_path).format()
        moved = (VoterEndpoint("CONTROLLER", "elsewhere", 7),)

        async def test() -> None:
            async with Node(tmp_path).running():
                pass
            async with Node(tmp_path, endpoints=moved).running() as quorum:
                assert quorum.voters.voters[0].endpoints == moved
            async with Node(tmp_path, endpoints=moved).running() as quorum:
                assert quorum.voters.voters[0].endpoints == moved

        run(test)
        counts = [len(batch.control) for batch in batches(Node(tmp_path)) if batch.control]
        assert counts == [3, 3, 1]

    @pytest.mark.parametrize("torn", [1, 30, 61, 75])
    def test_torn_tail_is_truncated(self, tmp_path: Path, torn: int) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                await create(quorum, "kept")
            path = node.log_folder / FIRST_SEGMENT
            whole = path.read_bytes()
            path.write_bytes(whole + whole[:torn])
            async with node.running() as quorum:
                assert "kept" in quorum.image.topics.by_name
                assert quorum.leader_epoch == 2

        run(test)

    def test_unfinished_transaction_is_aborted(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
            log = MetadataLog.open(node.disk, node.clock, node.settings)
            from moldau.metadata.records import encode_record

            records = [BeginTransactionRecord(name="x"), TopicRecord(name="never", topic_id=uid(7))]
            log.append([[encode_record(record, 30) for record in records]], 1)
            log.flush()
            log.close()
            async with node.running() as quorum:
                assert "never" not in quorum.image.topics.by_name
                await create(quorum, "later")
            async with node.running() as quorum:
                assert sorted(quorum.image.topics.by_name) == ["later"]

        run(test)

    def test_unfinished_bootstrap_transaction_is_repeated(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running():
                pass
            path = node.log_folder / FIRST_SEGMENT
            control, _ = batches(node)
            from moldau.metadata.records import encode_record
            from moldau.quorum.bootstrap import read_bootstrap

            started = [
                BeginTransactionRecord(name="Bootstrap records"),
                *read_bootstrap(node.disk, str(tmp_path)),
            ]
            values = [encode_record(record, 30) for record in started]
            head = path.read_bytes()[: control.header.size_in_bytes]
            path.write_bytes(head + data_batch(values, 3, 1, node.clock.time_ms()))
            async with node.running() as quorum:
                assert quorum.image.features.metadata_version == 30

        run(test)


class TestApacheKafkaFolders:
    def test_dynamic(self, tmp_path: Path) -> None:
        directory = parse_uuid("SSnLTKoQQJC4eiwAGUoEJw")
        endpoint = VoterEndpoint("CONTROLLER", "localhost", 19393)
        node = apache_node(tmp_path, "apache-dynamic", directory_id=directory, endpoints=(endpoint,))

        async def test() -> None:
            async with node.running() as quorum:
                assert quorum.leader_epoch == 2
                image = quorum.image
                assert len(image.topics.by_name) == 8
                assert len(image.topics.by_name["one0"].partitions) == 12
                assert image.topic_config("one3") == {"cleanup.policy": "compact", "retention.ms": "1000"}
                assert image.features.level("transaction.version") == 2
                broker = image.cluster.brokers[1]
                assert (broker.epoch, broker.fenced, broker.directories) == (13, True, (directory,))
                assert image.topics.by_name["one0"].partitions[0].elr == (1,)

        run(test)

    def test_static(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-static", static_voters=(1,))

        async def test() -> None:
            async with node.running() as quorum:
                assert list(quorum.image.topics.by_name) == ["two"]
                assert quorum.image.next_producer_id == 1000

        run(test)

    def test_replayed_log_equals_the_snapshot(self, tmp_path: Path) -> None:
        """Replaying the log written by Apache Kafka results in the snapshot that it wrote."""
        directory = parse_uuid("SSnLTKoQQJC4eiwAGUoEJw")
        node = apache_node(tmp_path, "apache-dynamic", directory_id=directory)
        with_snapshot = image_on_disk(node)
        for name in (SnapshotId(54, 1).file_name, SnapshotId(147, 1).file_name):
            (node.log_folder / name).unlink()
        from_log = image_on_disk(node)
        assert from_log == with_snapshot
