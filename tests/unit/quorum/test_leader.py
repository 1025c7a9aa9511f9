"""Decisions of the active controller: batching, publishing, full and failed disks."""

from __future__ import annotations

import asyncio
import errno
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import ThreadPool
from moldau.controller.topics.lifecycle import delete_topics
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.quorum.batches import Batch, read_batches
from moldau.storage.disk.disk import storage_failure
from tests.unit.quorum.harness import (
    FullDisk,
    Node,
    create,
    decide,
    image_on_disk,
    run,
    with_broker,
)

FIRST_SEGMENT = "00000000000000000000.log"


DATA = Path(__file__).parent / "data"


def batches(node: Node, segment: str = FIRST_SEGMENT) -> list[Batch]:
    return list(read_batches((node.log_folder / segment).read_bytes()))


def apache_node(tmp_path: Path, kind: str, **settings: object) -> Node:
    shutil.copytree(DATA / kind, tmp_path / "__cluster_metadata-0")
    return Node(tmp_path, **settings)


class TestWriting:
    def test_decisions_of_one_loop_iteration_share_a_batch(self, tmp_path: Path) -> None:
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

    def test_decisions_are_written_by_a_thread_pool(self, tmp_path: Path) -> None:
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

    def test_listeners_are_called_in_order_before_the_response(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format()
        published: list[tuple[MetadataDelta, MetadataImage]] = []

        async def test() -> None:
            quorum = node.make()
            quorum.add_listener(lambda delta, image: published.append((delta, image)))
            await quorum.start()
            await with_broker(quorum)
            await create(quorum, "orders")
            assert published[-1][1] is quorum.image
            assert [
                published[-1][1].topics.by_id[topic].name for topic in published[-1][0].topics_created
            ] == ["orders"]
            await quorum.close()

        run(test)
        for (_, before), (delta, after) in pairwise(published):
            assert delta.image is before
            assert after.offset > before.offset

    def test_first_delta_contains_the_whole_image(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-static", static_voters=(1,))
        published: list[MetadataDelta] = []

        async def test() -> None:
            quorum = node.make()
            quorum.add_listener(lambda delta, image: published.append(delta))
            await quorum.start()
            await quorum.close()

        run(test)
        assert len(published[0].topics_created) == 1
        assert published[0].broker_configs_changed(1)

    def test_read_waits_until_its_result_is_committed(self, tmp_path: Path) -> None:
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

    def test_rejected_decisions_append_no_records(self, tmp_path: Path) -> None:
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

    def test_closed_quorum_answers_not_controller(self, tmp_path: Path) -> None:
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
    def test_full_disk_fails_the_decisions_and_is_recovered_from(self, tmp_path: Path, on_sync: bool) -> None:
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

    def test_temporary_write_error_does_not_stop_the_quorum(self, tmp_path: Path) -> None:
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

    def test_group_is_limited_to_one_segment(self, tmp_path: Path) -> None:
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

    def test_failed_disk_stops_the_quorum(self, tmp_path: Path) -> None:
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
