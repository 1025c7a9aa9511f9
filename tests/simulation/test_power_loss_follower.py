"""A follower of the metadata quorum with power lost at any disk operation, while it appends, truncates, or
starts from the leader's snapshot: everything it reported to the leader is on disk, and it continues."""

from __future__ import annotations

from random import Random

from moldau.base.clock import ManualClock
from moldau.base.pool import InlinePool
from moldau.metadata.features import MAX_METADATA_VERSION
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.stored.metadata import TopicRecord
from moldau.quorum.batches import data_batch
from moldau.quorum.committed import CommittedMetadata
from moldau.quorum.follower import QuorumFollower
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.recovery import recover
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import encode_snapshot
from moldau.raft.types import Append, OffsetAndEpoch, SnapshotChunk, Truncate
from moldau.raft.voters import Voter, VoterSet
from moldau.storage.disk.disk import make_durable_dirs
from moldau.testing.simulation.disk import SimulatedDisk
from moldau.testing.simulation.drive import Drive, DriveImage
from tests.simulation.crash_points import SEEDS
from tests.simulation.logs import run
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import ENDPOINT

_SETTINGS = QuorumSettings(
    node_id=1,
    directory="/data/meta",
    directory_id=uid(101),
    static_voters=VoterSet.of(Voter(each, endpoints=(ENDPOINT,)) for each in (1, 2, 3)),
    segment_bytes=400,
)
_SNAPSHOT = OffsetAndEpoch(30, 3)


def _topic(epoch: int, offset: int) -> MetadataRecord:
    return TopicRecord(name=f"topic-{epoch}-{offset}", topic_id=uid(1000 * epoch + offset))


class _Follower:
    """A follower's log and snapshots, without Raft."""

    def __init__(self, drive: Drive) -> None:
        self.disk = SimulatedDisk(drive)
        clock = ManualClock()
        make_durable_dirs(self.disk, _SETTINGS.folder)
        self.log = MetadataLog.open(self.disk, clock, _SETTINGS)
        recovered = recover(self.log, self.disk, _SETTINGS)
        self.position = recovered.end_offset
        self.committed = CommittedMetadata(self.log, InlinePool(), recovered.loader, recovered.end_offset)
        self.following = QuorumFollower(
            self.log, self.committed, _SETTINGS, disk=self.disk, pool=InlinePool()
        )

    async def append(self, epoch: int, *counts: int) -> dict[int, str]:
        """Append batches of these record counts, fetched at once; repeat for those that were not appended."""
        start = offset = self.log.end_offset
        batches: dict[int, bytes] = {}
        for count in counts:
            topics = [_topic(epoch, each) for each in range(offset, offset + count)]
            values = [encode_record(each, MAX_METADATA_VERSION) for each in topics]
            batches[offset] = bytes(data_batch(values, offset, epoch, offset + 1))
            offset += count
        while (end := self.log.end_offset) < offset:
            records = b"".join(batch for base, batch in batches.items() if base >= end)
            await self.following.append(Append(records, epoch))
        return {each: f"topic-{epoch}-{each}" for each in range(start, offset)}

    async def topics(self) -> set[str]:
        """Return the topics if all records of the log were committed."""
        await self.committed.advance(self.log.end_offset)
        return set(self.committed.image.topics.by_name)


async def _workload(drive: Drive, reported: dict[int, str]) -> None:
    """`reported` is the topic of each offset that was reported to the leader."""
    follower = _Follower(drive)
    for counts in ((1,), (2, 1), (3, 2, 3), (1,)):
        reported |= await follower.append(1, *counts)
    await follower.committed.advance(4)
    for end in (12, 7):
        # From now on the leader relies on no more than that.
        for offset in range(end, follower.log.end_offset):
            del reported[offset]
        follower.following.truncate(Truncate(end))
        reported |= await follower.append(2 if end == 12 else 3, 2, 1)
    await _load_snapshot(follower, reported)
    reported |= await follower.append(3, 2, 2)
    follower.following.truncate(Truncate(follower.log.end_offset))
    reported |= await follower.append(4, 1)


async def _load_snapshot(follower: _Follower, reported: dict[int, str]) -> None:
    """Load the leader's snapshot: its log starts after the end of this one."""
    names = {int(name.split("-")[2]): int(name.split("-")[1]) for name in reported.values()}
    names |= dict.fromkeys(range(follower.log.end_offset, _SNAPSHOT.offset), 3)
    data = encode_snapshot(
        [_topic(epoch, offset) for offset, epoch in names.items()],
        MAX_METADATA_VERSION,
        epoch=_SNAPSHOT.epoch,
        time_ms=50,
        last_contained_log_timestamp=40,
    )
    third = len(data) // 3 + 1
    for position in range(0, len(data), third):
        part = data[position : position + third]
        is_last = position + third >= len(data)
        await follower.following.write_snapshot_chunk(SnapshotChunk(_SNAPSHOT, position, part, is_last))
    reported |= {offset: f"topic-{epoch}-{offset}" for offset, epoch in names.items()}


async def _check(drive: Drive, reported: dict[int, str]) -> None:
    follower = _Follower(drive)
    log = follower.log
    assert log.start_offset <= follower.position <= log.end_offset
    assert log.end_offset > max(reported, default=-1), "the log is shorter than reported to the leader"
    missing = set(reported.values()) - await follower.topics()
    assert not missing, f"the leader relies on {sorted(missing)}"
    names = await follower.append(9, 2)
    again = _Follower(drive)
    assert set(names.values()) <= await again.topics()


def test_a_follower_keeps_what_it_reported_to_its_leader() -> None:
    drive, reported = Drive(), dict[int, str]()
    points: list[tuple[DriveImage, dict[int, str]]] = []
    drive.on_operation = lambda: points.append((drive.image(), dict(reported)))
    run(_workload(drive, reported))
    run(_check(drive, reported))
    assert len(points) > 100
    for number, (image, counted_on) in enumerate(points):
        for loss in range(3 * SEEDS):
            random = Random(f"follower/{number}/{loss}")
            try:
                run(_check(image.after_power_loss(random), counted_on))
            except BaseException as error:
                error.add_note(f"power lost at operation {number} of {len(points)}, loss {loss}")
                raise
