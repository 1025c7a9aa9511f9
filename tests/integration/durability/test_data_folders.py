"""Opening of recorded folders of Apache Kafka 4.3 and earlier versions of Moldau (`tests/data/`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.folders.data_folders import (
    CONFIG,
    DATA,
    LOG_DIRECTORIES,
    group_offsets,
    last_values,
    unpack,
)
from tests.harness.folders.inventory import Inventory, stored_bytes, take_inventory
from tests.harness.folders.inventory_comparison import compare
from tests.harness.folders.metadata_folder import lasting_records, make_snapshot
from tests.harness.wire.requests import assert_serves

NAMES = sorted(path.stem for path in DATA.glob("*.json"))


#: The folders are old, and nothing in them may expire.
AGELESS: dict[str, str | int | bool] = {
    "log.retention.ms": -1,
    "offsets.retention.minutes": 2**31 - 1,
    "producer.id.expiration.ms": 2**31 - 1,
}


class Kept:
    """A node on a copy of a recorded folder."""

    def __init__(self, name: str, folder: Path, config: dict[str, str | int | bool]) -> None:
        self.name = name
        self.expected: Inventory = unpack(name, folder)
        self.directories = [folder / each for each in LOG_DIRECTORIES]
        self.cluster = Cluster(
            data_dir=folder,
            config={**CONFIG, **AGELESS, "log.dirs": ",".join(map(str, self.directories)), **config},
        )

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap_servers


@pytest.fixture
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    snapshots: dict[str, str | int | bool] = {"metadata.log.max.record.bytes.between.snapshots": 1}
    folder = Kept(request.param, tmp_path, snapshots if "-metadata" in request.param else {})
    with folder.cluster:
        yield folder


def named(*endings: str) -> pytest.MarkDecorator:
    names = [name for name in NAMES if name.endswith(endings)]
    return pytest.mark.parametrize("kept", names, indirect=True, ids=names)


def test_folders_of_apache_kafka_and_moldau_are_recorded() -> None:
    assert {name.partition("-")[0] for name in NAMES} == {"apache", "moldau"}
    assert {name.rpartition("-")[2] for name in NAMES} == {"clean", "killed", "groups", "metadata"}


@named("-clean", "-killed", "-groups")
def test_a_recorded_folder_opens_with_all_its_records(kept: Kept) -> None:
    """The records are the same at first and after more writes, a kill and a restart."""
    expected = dict(kept.expected)
    lasting = expected.pop("last_values", None)
    expected.pop("groups", None)
    for topic in expected["topics"].values():
        for partition in topic["partitions"].values():
            # Producer ids of idle producers had expired in some recordings.
            del partition["producers"]
    compare(expected, take_inventory(kept.bootstrap), killed=kept.name.endswith("-killed"))
    if lasting is not None:
        assert last_values(kept.bootstrap, "compacted") == lasting
    if not kept.name.endswith("-groups"):
        assert_serves(kept.bootstrap, "codec-none")
    before = take_inventory(kept.bootstrap)
    kept.cluster.stop()
    kept.cluster.start()
    compare(before, take_inventory(kept.bootstrap))


@named("-groups")
def test_coordinator_topics_of_a_recorded_folder_are_served_unchanged(kept: Kept) -> None:
    internal = {name: topic for name, topic in kept.expected["topics"].items() if topic["internal"]}
    assert sorted(internal) == ["__consumer_offsets", "__transaction_state"]
    for name, topic in internal.items():
        for index, partition in topic["partitions"].items():
            data = stored_bytes(kept.bootstrap, name, int(index))[: partition["bytes"]]
            assert hashlib.sha256(data).hexdigest() == partition["sha256"], f"{name}-{index}"


@named("-groups")
def test_committed_offsets_of_a_recorded_folder_are_loaded(kept: Kept) -> None:
    for group, offsets in kept.expected["groups"].items():
        assert group_offsets(kept.bootstrap, group, "orders") == offsets


@named("-metadata")
def test_records_of_every_type_are_kept_in_snapshots(kept: Kept) -> None:
    make_snapshot(kept.bootstrap, kept.directories[0])
    assert lasting_records(kept.directories[0]) == kept.expected["lasting_records"]
