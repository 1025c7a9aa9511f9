"""Records appended from a leader, truncated again, and the image that results."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.pool import InlinePool
from moldau.metadata.features import MAX_METADATA_VERSION
from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.stored.metadata import TopicRecord
from moldau.quorum.batches import data_batch
from moldau.quorum.committed import CommittedMetadata, UncommittedRecords
from moldau.quorum.follower import QuorumFollower
from moldau.quorum.metadata_log import MetadataLog
from moldau.raft.types import Append
from moldau.storage.disk.disk import DiskFull
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import FullDisk, Node, run


def topic(number: int) -> MetadataRecord:
    return TopicRecord(name=f"topic-{number}", topic_id=uid(number + 1))


def framed(*numbers: int) -> list[bytes]:
    return [encode_record(topic(each), MAX_METADATA_VERSION) for each in numbers]


def topics(image: MetadataImage) -> list[str]:
    return sorted(image.topics.by_name)


class Follower:
    def __init__(self, folder: Path, **settings: object) -> None:
        self.disk = FullDisk()
        node = Node(folder, disk=self.disk, static_voters=[1, 2, 3], **settings)
        node.format()
        self.log = MetadataLog.open(node.disk, node.clock, node.settings)
        self.committed = CommittedMetadata(self.log, InlinePool(), MetadataLoader(), 0)
        self.follower = QuorumFollower(
            self.log, self.committed, node.settings, disk=node.disk, pool=InlinePool()
        )


def test_truncation_within_a_group_of_batches(tmp_path: Path) -> None:
    """A leader wrote two batches at once and lost its leadership after the others had fetched one of them."""

    async def test() -> None:
        node = Follower(tmp_path)
        size = node.log.append([framed(0, 1), framed(2, 3)], epoch=1)
        node.committed.append(UncommittedRecords(0, 4, [topic(each) for each in range(4)], 1, 1, size))
        node.log.truncate(2)
        node.committed.truncate(2)
        await node.follower.append(Append(data_batch(framed(7), 2, 2, 5), 2))
        await node.committed.advance(3)
        assert topics(node.committed.image) == ["topic-0", "topic-1", "topic-7"]
        assert node.committed.end_offset == 3

    run(test)


def test_append_is_undone_when_the_disk_is_full_in_a_new_segment(tmp_path: Path) -> None:
    async def test() -> None:
        node = Follower(tmp_path, segment_bytes=300)
        await node.follower.append(Append(data_batch(framed(0, 1, 2, 3, 4), 0, 1, 1), 1))
        batches = [data_batch(framed(each), each, 1, each) for each in (5, 6)]
        node.disk.room_for_writes = 1
        with pytest.raises(DiskFull):
            await node.follower.append(Append(b"".join(batches), 1))
        assert node.log.end_offset == 5
        node.disk.room_for_writes = None
        await node.follower.append(Append(b"".join(batches), 1))
        await node.committed.advance(7)
        assert topics(node.committed.image) == [f"topic-{number}" for number in range(7)]

    run(test)


def test_one_append_stays_within_one_segment(tmp_path: Path) -> None:
    """Otherwise a power loss could leave the second segment without the end of the first."""

    async def test() -> None:
        node = Follower(tmp_path, segment_bytes=300)
        batches = [data_batch(framed(each), each, 1, 1 + each) for each in range(7)]
        ends = []
        while node.log.end_offset < len(batches):
            await node.follower.append(Append(b"".join(batches[node.log.end_offset :]), 1))
            ends.append(node.log.end_offset)
        assert ends == [segment.base_offset for segment in node.log.log.segments.items[1:]] + [7]
        await node.committed.advance(7)
        assert len(topics(node.committed.image)) == 7

    run(test)
