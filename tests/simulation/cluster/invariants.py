"""The internal invariants of a cluster, by name; checked many times per simulated second.

- *one leader per epoch*, of the metadata quorum and of every partition
- *metadata images agree*: at equal offsets all nodes have the same
- *logs agree below the high watermark*, byte for byte, and *committed never changes*
- *a leader has everything committed*
- *ISR members have everything committed*
- *nothing fails unnoticed*: no unhandled exception
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from zlib import crc32

from moldau.base.ids import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.metadata.image_records import image_records
from moldau.metadata.records import encode_record
from moldau.protocol.records import iter_batches
from moldau.replication.partition import Partition
from moldau.server.node import Node
from moldau.storage.log.log import Log
from moldau.testing.simulation.cluster import SimulatedCluster

_CHUNK = 1 << 20


class Invariants:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._quorum_leaders: dict[int, int] = {}
        self._leaders: dict[tuple[object, int, int], int] = {}
        self._images: dict[tuple[int, int], int] = {}
        #: By partition: every committed batch by its first offset.
        self._committed: dict[TopicPartition, dict[int, tuple[int, int]]] = defaultdict(dict)
        self._ends: dict[TopicPartition, int] = defaultdict(int)
        #: The offset up to which a log has been compared; a reopened or truncated log starts again.
        self._compared: dict[tuple[int, TopicPartition], tuple[Log, int]] = {}
        self._last_images: dict[int, MetadataImage] = {}
        self.looks = 0

    def look(self) -> None:
        self.looks += 1
        for node_id, node in self._cluster.serving.items():
            self._look_at_metadata(node_id, node)
            if node_id in self._cluster.broker_ids:
                for partition in node.broker.replicas:
                    self._look_at_partition(node_id, partition)
        self._look_at_in_sync_replicas()
        self._cluster.check_starts()
        assert not self._cluster.simulation.unhandled, (
            f"nothing fails unnoticed: {self._cluster.simulation.unhandled}"
        )

    def compare_from_the_beginning(self) -> None:
        """Compare all logs from their beginning with the next check."""
        self._compared.clear()

    # Metadata.

    def _look_at_metadata(self, node_id: int, node: Node) -> None:
        quorum = node.metadata
        if quorum.is_active and quorum.leader_id == node_id:
            leader = self._quorum_leaders.setdefault(quorum.leader_epoch, node_id)
            assert leader == node_id, (
                f"one leader per epoch: the quorum has {leader} and {node_id} in {quorum.leader_epoch}"
            )
        image = quorum.image
        if self._last_images.get(node_id) is image or image.offset < 0:
            return
        self._last_images[node_id] = image
        digest = _digest(image)
        known = self._images.setdefault((image.offset, image.epoch), digest)
        assert known == digest, f"metadata images agree: node {node_id} differs at offset {image.offset}"

    # Partitions.

    def _look_at_partition(self, node_id: int, partition: Partition) -> None:
        where, log = partition.topic_partition, partition.log
        if log is None:
            return
        if partition.is_leader:
            key = (partition.topic_id, where.partition, partition.leader_epoch)
            leader = self._leaders.setdefault(key, node_id)
            assert leader == node_id, (
                f"one leader per epoch: {where} has {leader} and {node_id} in {partition.leader_epoch}"
            )
            if self._is_newest(partition):
                assert log.log_end_offset >= self._ends[where], (
                    f"a leader has everything committed: {where} on {node_id} in {partition.leader_epoch}"
                    f" ends at {log.log_end_offset}, committed is {self._ends[where]}"
                )
        self._compare(node_id, where, log)

    def _is_newest(self, partition: Partition) -> bool:
        """Whether no node knows a later leader."""
        where = partition.topic_partition
        for image in self._last_images.values():
            topic = image.topics.by_name.get(where.topic)
            found = topic.partitions.get(where.partition) if topic is not None else None
            if found is not None and found.leader_epoch > partition.leader_epoch:
                return False
        return True

    def _compare(self, node_id: int, where: TopicPartition, log: Log) -> None:
        known, position = self._compared.get((node_id, where), (None, 0))
        if known is not log or position > log.log_end_offset:
            position = 0
        position = max(position, log.log_start_offset, log.local_log_start_offset)
        committed = self._committed[where]
        end = log.high_watermark
        for base_offset, last_offset, checksum in _batches(log, position, end):
            batch = committed.setdefault(base_offset, (last_offset, checksum))
            assert batch == (last_offset, checksum), (
                f"logs agree below the high watermark: {where} on {node_id} at {base_offset}"
            )
            position = last_offset + 1
        self._ends[where] = max(self._ends[where], end)
        self._compared[node_id, where] = (log, position)

    def _look_at_in_sync_replicas(self) -> None:
        """Check the ISR of the newest metadata: each member could become leader at any time."""
        newest = max(self._last_images.values(), key=lambda image: image.offset, default=None)
        if newest is None:
            return
        serving = self._cluster.serving
        for topic in newest.topics.by_name.values():
            for index, registration in topic.partitions.items():
                where = TopicPartition(topic.name, index)
                for member in registration.isr:
                    node = serving.get(member)
                    if node is None or not _is_registered(node, newest, member):
                        continue
                    self._look_at_member(member, node, where)

    def _look_at_member(self, node_id: int, node: Node, where: TopicPartition) -> None:
        log = node.broker.logs.table.current.get(where)
        if log is not None:
            assert log.log_end_offset >= self._ends[where], (
                f"ISR members have everything committed: {where} on {node_id} ends at {log.log_end_offset},"
                f" committed is {self._ends[where]}"
            )


def _is_registered(node: Node, image: MetadataImage, node_id: int) -> bool:
    """Whether the registration in the metadata is of this process and not of an earlier one."""
    broker = image.cluster.brokers.get(node_id)
    return broker is not None and broker.epoch == node.broker.lifecycle.epoch


def _digest(image: MetadataImage) -> int:
    version = image.features.metadata_version or 0
    return crc32(b"".join(sorted(encode_record(each, version) for each in image_records(image))))


def _batches(log: Log, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield first and last offset of every batch, and a checksum of all its bytes."""
    while start < end:
        found = log.reader.read(start, _CHUNK, upper_bound=end, blocking=True)
        data = memoryview(b"".join(found.parts)) if found is not None else memoryview(b"")
        if not data:
            return
        for position, header in iter_batches(data):
            checksum = crc32(data[position : position + header.size_in_bytes])
            yield header.base_offset, header.last_offset, checksum
            start = header.last_offset + 1
