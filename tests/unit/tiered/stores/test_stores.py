"""Every store keeps what it was given: in a folder, and in an S3 server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from moldau.base.errors import KafkaError
from moldau.base.ids import Uuid
from moldau.tiered.state.segments import PartitionId
from moldau.tiered.stores.folder import FolderStore
from moldau.tiered.stores.interface import (
    RemoteIndexesDamaged,
    RemoteSegmentMissing,
    RemoteStore,
    RemoteStoreError,
    SegmentIndexes,
    StoredSegment,
)
from moldau.tiered.stores.loading import load_store
from moldau.tiered.stores.objects import ObjectStore
from tests.harness.tiered.s3 import s3_configs, s3_server
from tests.harness.tiered.segments import PARTITION, Source, segment

_MEMORY = {"url": "memory:///"}


class Unusable:
    """A store whose author made a mistake."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        raise ZeroDivisionError("no")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteStore:
    if request.param == "folder":
        return FolderStore({"dir": str(tmp_path)})
    return ObjectStore(s3_configs(request.getfixturevalue("s3"), tmp_path.name))


def test_a_store_returns_what_it_was_given(store: RemoteStore) -> None:
    source = Source(0, [bytes([n]) * 5000 for n in range(200)])
    item = segment(1, 0, 199, size=source.size)
    item = item._replace(custom_metadata=store.copy(item, source))
    assert store.read_indexes(item) == source.indexes()
    assert store.read(item, 0, source.size) == source.data
    assert store.read(item, 777, 5000) == source.data[777:5777]
    assert store.read(item, source.size - 5, 100) == source.data[-5:]
    other = segment(2, 0, 199, size=source.size)
    with pytest.raises(RemoteSegmentMissing):
        store.read(other, 0, 10)
    with pytest.raises(RemoteSegmentMissing):
        store.read_indexes(other)


def test_segments_are_listed(store: FolderStore | ObjectStore) -> None:
    source = Source(0, [b"x" * 100] * 5)
    topic = PartitionId("a-b_c.d", PARTITION.topic_id, 12)
    items = [segment(number, number * 5, number * 5 + 4, size=source.size) for number in (1, 2)]
    items.append(items[0]._replace(partition_id=topic, id=Uuid(b"\xff" * 16)))
    assert list(store.segments()) == []
    for item in items:
        store.copy(item, source)
    listed = {StoredSegment(item.partition_id, item.id, item.start_offset) for item in items}
    assert len(list(store.segments())) == 3
    assert set(store.segments()) == listed
    for item in listed:
        store.delete(item.as_remote())
    assert list(store.segments()) == []


def test_deletions_may_be_repeated(store: RemoteStore) -> None:
    source = Source(0, [b"x" * 100] * 5)
    items = [segment(number, 0, 4, size=source.size) for number in (1, 2)]
    for item in items:
        store.copy(item, source)
    store.delete(items[0])
    store.delete(items[0])
    with pytest.raises(RemoteSegmentMissing):
        store.read(items[0], 0, 10)
    assert store.read(items[1], 0, 10) == source.data[:10]


def test_copies_may_be_repeated(store: RemoteStore) -> None:
    source = Source(0, [b"x" * 100] * 5)
    item = segment(1, 0, 4, size=source.size)
    store.copy(item, source)
    store.copy(item, source)
    assert store.read(item, 0, source.size) == source.data


def test_an_unreachable_service_is_a_store_error() -> None:
    configs = s3_configs("http://127.0.0.1:1", "gone") | {"retry.timeout.ms": "200"}
    source = Source(0, [b"x"])
    with pytest.raises(RemoteStoreError, match="cannot copy"):
        ObjectStore(configs).copy(segment(1, 0, 0, size=source.size), source)


def test_packed_indexes_are_checked_bit_by_bit() -> None:
    indexes = SegmentIndexes(b"1", b"22", b"", b"333", b"4")
    packed = indexes.pack()
    assert SegmentIndexes.unpack(packed) == indexes
    flipped = (
        packed[:at] + bytes([packed[at] ^ 1 << bit]) + packed[at + 1 :]
        for at in range(len(packed))
        for bit in range(8)
    )
    for damaged in (packed[:-1], packed + b"x", b"", *flipped):
        with pytest.raises(RemoteIndexesDamaged, match="damaged"):
            SegmentIndexes.unpack(damaged)


@pytest.mark.parametrize("kind", ["index", "timeindex", "leader_epoch_checkpoint", "snapshot"])
def test_indexes_in_a_folder_are_checked(kind: str, tmp_path: Path) -> None:
    store = FolderStore({"dir": str(tmp_path)})
    source = Source(0, [b"x" * 100] * 9)
    item = segment(1, 0, 8, size=source.size)
    item = item._replace(custom_metadata=store.copy(item, source))
    (path,) = tmp_path.glob(f"*/*/*.{kind}")
    path.write_bytes(path.read_bytes() + b"\x00")
    with pytest.raises(RemoteIndexesDamaged, match="checksum"):
        store.read_indexes(item)
    # Apache Kafka's segments have no checksum.
    assert store.read_indexes(item._replace(custom_metadata=None)).offsets[:8] == source.indexes().offsets[:8]


def test_a_missing_transaction_index_is_noticed(tmp_path: Path) -> None:
    store = FolderStore({"dir": str(tmp_path)})
    source = Source(0, [b"x"])
    source.use(source.indexes()._replace(transactions=b"t" * 34))
    item = segment(1, 0, 0, size=source.size)
    item = item._replace(custom_metadata=store.copy(item, source))
    (path,) = tmp_path.glob("*/*/*.txnindex")
    path.unlink()
    with pytest.raises(RemoteIndexesDamaged):
        store.read_indexes(item)


@pytest.mark.parametrize(
    ("name", "configs", "reason"),
    [
        ("io.aiven.kafka.tieredstorage.RemoteStorageManager", {}, "must name a Python class"),
        ("FolderStore", {}, "write it as package.module.Class"),
        ("moldau.tiered.stores.folder.Nothing", {}, "cannot be loaded"),
        ("moldau.tiered.stores.folder.FolderStore", {}, "set rsm.config.dir"),
        ("moldau.tiered.stores.objects.ObjectStore", {}, "set rsm.config.url"),
        ("moldau.tiered.stores.objects.ObjectStore", {"url": "what://x"}, "cannot be used"),
        ("moldau.tiered.stores.objects.ObjectStore", _MEMORY | {"part.bytes": "0"}, "part.bytes=0 must be"),
        ("moldau.tiered.stores.objects.ObjectStore", _MEMORY | {"part.bytes": "-1"}, "part.bytes=-1 must be"),
        ("moldau.tiered.stores.objects.ObjectStore", _MEMORY | {"part.bytes": "8M"}, "is not a number"),
        ("moldau.tiered.stores.objects.ObjectStore", _MEMORY | {"retry.timeout.ms": "-1"}, "must be between"),
        ("tests.unit.tiered.stores.test_stores.Unusable", {}, "ZeroDivisionError: no"),
    ],
)
def test_a_store_that_cannot_be_used_is_explained(name: str, configs: Mapping[str, str], reason: str) -> None:
    with pytest.raises(KafkaError, match=reason):
        load_store(name, None, configs)


def test_the_class_name_of_apache_kafka_is_the_folder_store(tmp_path: Path) -> None:
    name = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    assert isinstance(load_store(name, None, {"dir": str(tmp_path)}), FolderStore)
