"""Unfinished deletions and moves of one broker, completed by the other: `-delete`, `-future`, `-stray`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.ids import Uuid, format_uuid
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.harness.apache.shared_folder import APACHE, MOLDAU, SharedFolder
from tests.harness.folders.inventory import stored_bytes
from tests.harness.folders.workload import alter_configs, delete_topic
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import assert_serves, create_and_wait, metadata_of, produce
from tests.harness.wire.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(100)]

BOTH_WAYS = [(APACHE, MOLDAU), (MOLDAU, APACHE)]
UNKNOWN_TOPIC = 3
CONFIG: dict[str, str | int | bool] = {
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
    "log.segment.delete.delay.ms": 4000,
    "log.initial.task.delay.ms": 100,
}


@pytest.fixture
def shared(tmp_path: Path, libs: Path) -> Iterator[SharedFolder]:
    with SharedFolder(tmp_path, libs, CONFIG) as folder:
        yield folder


def folders(shared: SharedFolder, pattern: str) -> list[Path]:
    return sorted(path for each in shared.dirs for path in each.iterdir() if re.fullmatch(pattern, path.name))


def fill(bootstrap: str, topic: str, partitions: int = 1) -> None:
    create_and_wait(bootstrap, topic, partitions)
    for partition in range(partitions):
        for number in range(20):
            taken = produce(bootstrap, topic, batch([(b"k", b"%d" % number * 200)]), partition=partition)
            assert taken.error_code == 0


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
def test_an_unfinished_deletion_is_completed(first: str, second: str, shared: SharedFolder) -> None:
    shared.format(first)
    bootstrap = shared.start(first)
    fill(bootstrap, "doomed", 2)
    delete_topic(bootstrap, "doomed")
    marked = r"doomed-\d\.[0-9a-f]{32}-delete"
    eventually(lambda: len(folders(shared, marked)) == 2, what="both folders are marked")
    shared.kill()
    assert len(folders(shared, marked)) == 2
    bootstrap = shared.start(second)
    assert metadata_of(bootstrap, "doomed").error_code == UNKNOWN_TOPIC
    eventually(lambda: not folders(shared, "doomed.*"), what="both folders are removed")
    fill(bootstrap, "doomed")
    shared.stop()


def throttle(bootstrap: str, rate: str | None) -> None:
    alter_configs(bootstrap, (4, "1", {"replica.alter.log.dirs.io.max.bytes.per.second": rate}))


def move(bootstrap: str, topic: str, target: Path) -> None:
    asked = AlterReplicaLogDirTopic(name=topic, partitions=[0])
    with Wire(bootstrap) as wire:
        answer = wire.call(
            AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(target), topics=[asked])]), 2
        )
    assert answer.results[0].partitions[0].error_code == 0


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
def test_an_unfinished_move_to_another_directory_is_completed(
    first: str, second: str, shared: SharedFolder
) -> None:
    shared.format(first)
    bootstrap = shared.start(first)
    fill(bootstrap, "moving")
    data = stored_bytes(bootstrap, "moving")
    throttle(bootstrap, "1")
    under_way = r"moving-0\.[0-9a-f]{32}-future"
    for _ in range(10):
        (place,) = folders(shared, "moving-0")
        target = next(each for each in shared.dirs if each != place.parent)
        move(bootstrap, "moving", target)
        shared.kill()
        if folders(shared, under_way):
            break
        bootstrap = shared.start(first)
    assert [path.parent for path in folders(shared, under_way)] == [target]
    bootstrap = shared.start(second)
    assert stored_bytes(bootstrap, "moving") == data
    throttle(bootstrap, None)
    eventually(lambda: folders(shared, "moving-0") == [target / "moving-0"], what="the move is complete")
    assert folders(shared, under_way) == []
    assert stored_bytes(bootstrap, "moving") == data
    assert_serves(bootstrap, "moving")
    shared.stop()
    assert_serves(shared.start(first), "moving")
    assert folders(shared, "moving-0") == [target / "moving-0"]


def other_topics_folder(folder: Path, name: str) -> Path:
    """Copy a partition folder as that of a topic unknown to the metadata."""
    copy = folder.parent / name
    shutil.copytree(folder, copy)
    (copy / "partition.metadata").write_text(f"version: 0\ntopic_id: {format_uuid(Uuid(b'unknown-' * 2))}")
    return copy


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
def test_unknown_partition_folders_become_stray(first: str, second: str, shared: SharedFolder) -> None:
    shared.format(first)
    bootstrap = shared.start(first)
    fill(bootstrap, "known", 2)
    data = stored_bytes(bootstrap, "known", 1)
    shared.stop()
    (one,), (two,) = folders(shared, "known-0"), folders(shared, "known-1")
    ghost = other_topics_folder(one, "ghost-0")
    future = other_topics_folder(one, "ghost-1.0123456789abcdef0123456789abcdef-future")
    # The folder of a deleted topic with the name of an existing one.
    former = other_topics_folder(one, "former-0")
    shutil.rmtree(one)
    former.rename(one)
    segment = (ghost / "00000000000000000000.log").read_bytes()
    stray = r"(ghost|known)-\d\.[0-9a-f]{32}-stray"
    for broker in (second, first, second):
        bootstrap = shared.start(broker)
        strays = folders(shared, stray)
        assert [path.name.partition(".")[0] for path in strays] == ["ghost-0", "ghost-1", "known-0"]
        assert {(path / "00000000000000000000.log").read_bytes() for path in strays} == {segment}
        assert not ghost.exists()
        assert not future.exists()
        assert metadata_of(bootstrap, "ghost").error_code == UNKNOWN_TOPIC
        eventually(lambda: metadata_of(bootstrap, "known").partitions[0].leader_id == 1)  # noqa: B023
        assert stored_bytes(bootstrap, "known", 0) == b""
        assert stored_bytes(bootstrap, "known", 1) == data
        shared.stop()
    assert two.exists()
