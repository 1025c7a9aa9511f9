"""Which cluster, node and directory a folder belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.ids import DirectoryId, parse_uuid
from moldau.config.broker.config import BrokerConfig
from moldau.server.startup.meta_properties import (
    Folders,
    MetaProperties,
    UnusableFolder,
    check_folders,
    load_folders,
    parse_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from moldau.server.startup.storage_info import storage_info
from moldau.storage.disk.disk import PosixDisk
from tests.unit.config.node_properties import node

DISK = PosixDisk()
ONE = parse_uuid("JEXY6aqzQY-32P5TStzaFg")
TWO = parse_uuid("MvDxzVmcRsaTz33bUuRU6A")
META = MetaProperties(1, "c", 1, ONE)


def test_written_properties_are_read_back(tmp_path: Path) -> None:
    assert read_meta_properties(DISK, str(tmp_path)) is None
    write_meta_properties(DISK, ManualClock(), str(tmp_path), META)
    assert read_meta_properties(DISK, str(tmp_path)) == META


def test_version_0_is_read() -> None:
    old = parse_meta_properties({"broker.id": "3", "cluster.id": "c"})
    assert old == MetaProperties(0, "c", 3, None)
    assert old.to_properties() == {"broker.id": "3", "version": "0", "cluster.id": "c"}


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"version": "7"}, "Unknown meta.properties version number 7"),
        ({"version": "1", "node.id": "1"}, "Failed to find cluster.id"),
        ({"version": "1", "cluster.id": "c"}, "Failed to find node.id"),
        ({"version": "1", "cluster.id": "c", "node.id": "q"}, "Unable to read node.id as a base-10 number."),
        ({"version": "1", "cluster.id": "c", "node.id": "1", "directory.id": "x"}, "directory.id"),
    ],
)
def test_invalid_properties_are_refused(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(UnusableFolder, match=sentence):
        parse_meta_properties(properties)


def test_folders_are_classified_by_their_state(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    write_meta_properties(DISK, ManualClock(), str(tmp_path / "a"), META)
    paths = [str(tmp_path / name) for name in ("a", "b", "c", "file")]
    folders = load_folders(DISK, paths)
    assert folders.formatted == {paths[0]: META}
    assert folders.unformatted == (paths[1], paths[2])
    assert folders.failed == {paths[3]: "Not a directory"}


def both(second: MetaProperties) -> Folders:
    return Folders({"/a": META, "/b": second}, (), {})


def test_folders_of_one_node_are_accepted() -> None:
    assert check_folders(both(META._replace(directory_id=TWO)), 1) == "c"
    assert check_folders(Folders({}, ("/a",), {}), 1) is None


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (MetaProperties(1, "d", 1, TWO), "Invalid cluster.id in: /b/meta.properties. Expected c, but read d"),
        (MetaProperties(1, "c", 2, TWO), "Stored node id 2 doesn't match previous node id 1 in /b/meta"),
        (META, "/b/meta.properties and /a/meta.properties have the same directory.id"),
        (MetaProperties(1, "c", 1, DirectoryId(bytes(15) + b"\x05")), "/b/meta.properties has the reserved"),
    ],
)
def test_folders_of_other_nodes_or_clusters_are_refused(second: MetaProperties, sentence: str) -> None:
    with pytest.raises(UnusableFolder) as refused:
        check_folders(both(second), 1)
    assert str(refused.value).startswith(sentence)


def test_info_prints_the_folders_and_their_metadata(tmp_path: Path) -> None:
    config = BrokerConfig(node(log_dirs=f"{tmp_path}/b,{tmp_path}/a,{tmp_path}/c,{tmp_path}/d"))
    assert storage_info(DISK, config).text == (
        f"Found problems:\n  {tmp_path}/a does not exist\n  {tmp_path}/b does not exist\n"
        f"  {tmp_path}/c does not exist\n  {tmp_path}/d does not exist\n\n"
    )
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "d").write_text("")
    write_meta_properties(DISK, ManualClock(), str(tmp_path / "a"), META)
    (tmp_path / "b" / "meta.properties").write_text("version=7\n")
    info = storage_info(DISK, config)
    assert info.text == (
        f"Found log directories:\n  {tmp_path}/a\n  {tmp_path}/b\n  {tmp_path}/c\n\n"
        "Found metadata: {cluster.id=c, directory.id=JEXY6aqzQY-32P5TStzaFg, node.id=1, version=1}\n\n"
        "Found problems:\n"
        f"  Error loading {tmp_path}/b/meta.properties: Unknown meta.properties version number 7\n"
        f"  {tmp_path}/c is not formatted.\n"
        f"  {tmp_path}/d is not a directory\n\n"
    )
    assert len(info.problems) == 3


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (MetaProperties(1, "d", 1, TWO), "Mismatched cluster IDs between storage directories."),
        (MetaProperties(1, "c", 2, TWO), "Mismatched node IDs between storage directories."),
    ],
)
def test_info_reports_mismatched_ids(tmp_path: Path, second: MetaProperties, problem: str) -> None:
    for name, properties in (("a", META), ("b", second)):
        (tmp_path / name).mkdir()
        write_meta_properties(DISK, ManualClock(), str(tmp_path / name), properties)
    config = BrokerConfig(node(log_dirs=f"{tmp_path}/b,{tmp_path}/a"))
    assert storage_info(DISK, config).problems == (problem,)
