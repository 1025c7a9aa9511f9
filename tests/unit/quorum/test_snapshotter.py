"""When snapshots are written and deleted."""

from __future__ import annotations

from pathlib import Path

from moldau.controller.topics.lifecycle import delete_topics
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.unit.quorum.harness import (
    Node,
    create,
    decide,
    run,
    with_broker,
)

FIRST_SEGMENT = "00000000000000000000.log"


class TestSnapshots:
    def snapshots(self, node: Node) -> list[str]:
        return sorted(path.name for path in node.log_folder.glob("*.checkpoint"))

    def test_snapshot_is_written_after_max_record_bytes(self, tmp_path: Path) -> None:
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

    def test_snapshot_is_written_after_max_interval(self, tmp_path: Path) -> None:
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

    def test_snapshots_and_log_are_deleted_by_retention_bytes(self, tmp_path: Path) -> None:
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

    def test_snapshots_are_deleted_by_retention_ms(self, tmp_path: Path) -> None:
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

    def test_log_restarts_at_a_snapshot_after_its_end(self, tmp_path: Path) -> None:
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
