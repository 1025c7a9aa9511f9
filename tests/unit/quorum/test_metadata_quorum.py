from __future__ import annotations

import asyncio
import errno
import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, parse_uuid
from moldau.base.pool import ThreadPool
from moldau.controller.topics.lifecycle import delete_topics
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.stored.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from moldau.protocol.stored.metadata import BeginTransactionRecord, EndTransactionRecord, TopicRecord
from moldau.quorum.batches import Batch, data_batch, read_batches
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.snapshots import SnapshotId
from moldau.raft.voters import Voter, VoterEndpoint
from moldau.storage.disk.disk import storage_failure
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import (
    ENDPOINT,
    FullDisk,
    Node,
    create,
    decide,
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
    def test_a_dynamic_quorum_writes_what_apache_writes(self, tmp_path: Path) -> None:
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

    def test_a_static_quorum_has_no_voters_in_its_log(self, tmp_path: Path) -> None:
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

    def test_the_levels_of_the_format_are_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format(levels={"group.version": 1, "metadata.version": 28})

        async def test() -> None:
            async with node.running() as quorum:
                assert quorum.image.features.level("group.version") == 1
                assert quorum.image.features.metadata_version == 28

        run(test)


class TestRestart:
    def test_the_epoch_grows_and_everything_is_there(self, tmp_path: Path) -> None:
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
        ids=["led", "stood for election", "voted for another"],
    )
    def test_a_remembered_epoch_counts_even_without_records(
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

    def test_a_voter_that_moved_says_so(self, tmp_path: Path) -> None:
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
    def test_a_torn_tail_is_cut(self, tmp_path: Path, torn: int) -> None:
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

    def test_a_transaction_nobody_ended_is_aborted(self, tmp_path: Path) -> None:
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

    def test_an_unfinished_bootstrap_begins_again(self, tmp_path: Path) -> None:
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


class TestApachesFolders:
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

    def test_log_and_snapshot_say_the_same(self, tmp_path: Path) -> None:
        """Apache's own snapshot is the judge of how we replay its log."""
        directory = parse_uuid("SSnLTKoQQJC4eiwAGUoEJw")
        node = apache_node(tmp_path, "apache-dynamic", directory_id=directory)
        with_snapshot = image_on_disk(node)
        for name in (SnapshotId(54, 1).file_name, SnapshotId(147, 1).file_name):
            (node.log_folder / name).unlink()
        from_log = image_on_disk(node)
        assert from_log == with_snapshot


class TestUnusableFolders:
    def refused(self, node: Node, message: str) -> None:
        async def test() -> None:
            with pytest.raises(UnusableMetadata, match=message):
                await node.make().start()

        run(test)

    def test_not_formatted_for_a_dynamic_quorum(self, tmp_path: Path) -> None:
        self.refused(Node(tmp_path), "Format the folder with --standalone")

    def test_another_node(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(2,))
        node.format()
        self.refused(node, "Node 1 is not a voter of the metadata quorum")

    def test_a_copied_folder(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format(voters=[Voter(1, uid(55), (ENDPOINT,))])
        self.refused(node, "belongs to a directory with another directory.id")

    def test_a_damaged_snapshot(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-dynamic")
        path = node.log_folder / SnapshotId(147, 1).file_name
        path.write_bytes(path.read_bytes()[:-10])
        self.refused(node, "00000000000000000147-0000000001.checkpoint is damaged")

    def test_damage_before_the_end(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-static", static_voters=(1,))
        path = node.log_folder / FIRST_SEGMENT
        data = bytearray(path.read_bytes())
        data[600] ^= 0xFF
        path.write_bytes(data)
        self.refused(node, "invalid batch at position 421, followed by valid ones")
        assert path.read_bytes() == data

    def test_a_log_without_its_beginning(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.log_folder.mkdir()
        record = data_batch([b"\x01\x14\x00\x00"], 500, 1, 1)
        (node.log_folder / "00000000000000000500.log").write_bytes(record)
        self.refused(node, "starts at offset 500, but there is no snapshot")

    def test_records_of_a_newer_release(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.log_folder.mkdir()
        (node.log_folder / FIRST_SEGMENT).write_bytes(data_batch([b"\x01\x63\x00\x00"], 0, 1, 1))
        self.refused(node, "metadata record type 99 version 0 is not supported")

    def test_contradictions(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.log_folder.mkdir()
        gone = b"\x01\x09\x00" + uid(7) + b"\x00"
        (node.log_folder / FIRST_SEGMENT).write_bytes(data_batch([gone], 0, 1, 1))
        self.refused(node, "which does not exist")


class TestWriting:
    def test_decisions_of_one_turn_share_a_batch(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                before = len(batches(node))
                await asyncio.gather(*(create(quorum, f"topic-{number}") for number in range(20)))
                assert len(batches(node)) == before + 1
                assert len(quorum.image.topics.by_name) == 20

        run(test)

    def test_with_threads_too(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()
        pool = ThreadPool(2)

        async def test() -> None:
            async with node.running(pool) as quorum:
                await with_broker(quorum)
                for turn in range(5):
                    names = [f"topic-{turn}-{number}" for number in range(10)]
                    await asyncio.gather(*(create(quorum, name) for name in names))
                assert len(quorum.image.topics.by_name) == 50
                assert quorum.high_watermark == quorum.log_end_offset

        run(test)
        pool.close()
        assert len(image_on_disk(node).topics.by_name) == 50

    def test_listeners_hear_everything_in_order_before_the_answer(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()
        heard: list[tuple[MetadataDelta, MetadataImage]] = []

        async def test() -> None:
            quorum = node.make()
            quorum.add_listener(lambda delta, image: heard.append((delta, image)))
            await quorum.start()
            await with_broker(quorum)
            await create(quorum, "orders")
            assert heard[-1][1] is quorum.image
            assert [heard[-1][1].topics.by_id[topic].name for topic in heard[-1][0].topics_created] == [
                "orders"
            ]
            await quorum.close()

        run(test)
        for (_, before), (delta, after) in pairwise(heard):
            assert delta.image is before
            assert after.offset > before.offset

    def test_the_first_image_comes_with_all_that_is_in_it(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-static", static_voters=(1,))
        heard: list[MetadataDelta] = []

        async def test() -> None:
            quorum = node.make()
            quorum.add_listener(lambda delta, image: heard.append(delta))
            await quorum.start()
            await quorum.close()

        run(test)
        assert len(heard[0].topics_created) == 1
        assert heard[0].broker_configs_changed(1)

    def test_a_read_waits_for_what_it_saw(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                writing = asyncio.ensure_future(create(quorum, "orders"))
                await asyncio.sleep(0)
                names = await quorum.read(lambda: list(quorum.controller.image.topics.by_name))
                assert names == ["orders"]
                assert "orders" in quorum.image.topics.by_name
                await writing

        run(test)

    def test_refused_decisions_leave_the_log_alone(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                end = quorum.log_end_offset
                request = DeleteTopicsRequest(topics=[DeleteTopicState(name="nobody")])
                response = await decide(quorum, delete_topics, request)
                assert response.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                assert quorum.log_end_offset == end

        run(test)

    def test_after_closing_nothing_is_decided(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                pass
            with pytest.raises(KafkaError) as failure:
                await create(quorum, "late")
            assert failure.value.code is ErrorCode.NOT_CONTROLLER

        run(test)

    @pytest.mark.parametrize("on_sync", [False, True])
    def test_no_room_on_the_disk(self, tmp_path: Path, on_sync: bool) -> None:
        disk = FullDisk()
        node = Node(tmp_path, disk=disk)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                await create(quorum, "before")
                disk.is_full, disk.full_on_sync = not on_sync, on_sync
                outcomes = await asyncio.gather(
                    *(create(quorum, f"lost-{number}") for number in range(3)), return_exceptions=True
                )
                assert [getattr(outcome, "code", None) for outcome in outcomes] == [
                    ErrorCode.KAFKA_STORAGE_ERROR
                ] * 3
                assert list(quorum.controller.image.topics.by_name) == ["before"]
                disk.is_full = disk.full_on_sync = False
                await create(quorum, "after")
            async with node.running() as quorum:
                assert sorted(quorum.image.topics.by_name) == ["after", "before"]

        run(test)
        assert node.failures == []

    def test_what_passes_does_not_end_the_quorum(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                flush = quorum._log.flush

                def fail() -> None:
                    raise storage_failure(OSError(errno.EMFILE, "Too many open files"), str(tmp_path))

                quorum._log.flush = fail  # type: ignore[method-assign]
                with pytest.raises(KafkaError, match="Too many open files"):
                    await create(quorum, "lost")
                quorum._log.flush = flush  # type: ignore[method-assign]
                await create(quorum, "after")
            async with node.running() as quorum:
                assert list(quorum.image.topics.by_name) == ["after"]

        run(test)
        assert node.failures == []

    def test_what_is_written_together_fits_into_a_segment(self, tmp_path: Path) -> None:
        node = Node(tmp_path, segment_bytes=60_000)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                outcomes = await asyncio.gather(
                    *(create(quorum, f"wide-{number}", partitions=100) for number in range(20)),
                    return_exceptions=True,
                )
                refused = [outcome for outcome in outcomes if isinstance(outcome, KafkaError)]
                assert {error.code for error in refused} == {ErrorCode.REQUEST_TIMED_OUT}
                assert 0 < len(refused) < 20
                for number in range(5):
                    await create(quorum, f"later-{number}", partitions=100)
                names = set(quorum.image.topics.by_name)
                assert len(names) == 25 - len(refused)
            async with node.running() as quorum:
                assert set(quorum.image.topics.by_name) == names

        run(test)
        assert node.failures == []
        assert len(list(node.log_folder.glob("*.log"))) > 1

    def test_a_broken_disk_ends_the_quorum(self, tmp_path: Path) -> None:
        disk = FullDisk()
        node = Node(tmp_path, disk=disk)
        node.format()

        async def test() -> None:
            quorum = node.make()
            await quorum.start()
            await with_broker(quorum)

            def fail() -> None:
                raise OSError(5, "Input/output error")

            quorum._log.flush = fail  # type: ignore[method-assign]
            with pytest.raises(KafkaError, match="The metadata log failed"):
                await create(quorum, "lost")
            assert len(node.failures) == 1
            await quorum.close()

        run(test)


class TestSnapshots:
    def snapshots(self, node: Node) -> list[str]:
        return sorted(path.name for path in node.log_folder.glob("*.checkpoint"))

    def test_by_size(self, tmp_path: Path) -> None:
        node = Node(tmp_path, snapshot_after_bytes=5_000)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                await create(quorum, "wide", partitions=100)
                await create(quorum, "more")
                image = quorum.image
            assert len(self.snapshots(node)) == 2
            async with node.running() as quorum:
                assert quorum.image.topics == image.topics
                assert quorum.image.cluster == image.cluster
                assert quorum.image.configs == image.configs

        run(test)

    def test_by_time(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                await quorum.maintain()
                assert len(self.snapshots(node)) == 1
                node.clock.advance(3_600_001)
                await quorum.maintain()
                assert len(self.snapshots(node)) == 2
                node.clock.advance(3_600_001)
                await quorum.maintain()
                assert len(self.snapshots(node)) == 2, "nothing was written since"

        run(test)

    def test_old_ones_and_the_log_before_them_go(self, tmp_path: Path) -> None:
        node = Node(tmp_path, snapshot_after_bytes=4_000, retention_bytes=20_000, segment_bytes=6_000)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                for number in range(12):
                    await create(quorum, f"topic-{number}", partitions=20)
                    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"topic-{number}")])
                    await decide(quorum, delete_topics, delete)
                    await quorum.maintain()
                await create(quorum, "last")
                kept = self.snapshots(node)
                start = quorum._log.log.log_start_offset
                assert start > 0
                assert f"{start:020d}" == kept[0].partition("-")[0]
                image = quorum.image
            async with node.running() as quorum:
                assert quorum.image.topics == image.topics

        run(test)

    def test_old_ones_go_by_age(self, tmp_path: Path) -> None:
        node = Node(tmp_path, retention_ms=10_000, snapshot_after_ms=1_000)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                for number in range(4):
                    node.clock.advance(6_000)
                    await create(quorum, f"topic-{number}")
                    await quorum.maintain()
                assert len(self.snapshots(node)) == 2

        run(test)

    def test_a_snapshot_ahead_of_the_log_wins(self, tmp_path: Path) -> None:
        node = Node(tmp_path, snapshot_after_bytes=4_000)
        node.format()

        async def test() -> None:
            async with node.running() as quorum:
                await with_broker(quorum)
                await create(quorum, "wide", partitions=100)
                await quorum.maintain()
            path = node.log_folder / FIRST_SEGMENT
            path.write_bytes(path.read_bytes()[:174])
            async with node.running() as quorum:
                assert "wide" in quorum.image.topics.by_name
                assert quorum._log.log.log_start_offset > 100
                await create(quorum, "later")
            async with node.running() as quorum:
                assert sorted(quorum.image.topics.by_name) == ["later", "wide"]

        run(test)
