"""Formatting the folders of a node; `tests/interop` compares every byte with Apache Kafka's StorageTool."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.ids import format_uuid, parse_uuid
from moldau.config.broker.config import BrokerConfig
from moldau.protocol.stored.metadata import FeatureLevelRecord
from moldau.quorum.bootstrap import read_bootstrap
from moldau.quorum.snapshots import read_snapshot
from moldau.server.startup.format import FormatError, FormatOptions, format_storage, is_formatted
from moldau.server.startup.meta_properties import read_meta_properties
from moldau.storage.disk.disk import PosixDisk
from tests.unit.config.node_properties import node

DISK = PosixDisk()
CLUSTER = "PyN0qanKStKz_he6AG-KTQ"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER = "7Xw2PzKRRgWaTVzn9SHkgA"
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def dynamic(folder: Path, **changes: str) -> BrokerConfig:
    properties = node(
        "controller.quorum.voters", log_dirs=f"{folder}/b,{folder}/a", metadata_log_dir=f"{folder}/m"
    )
    properties["controller.quorum.bootstrap.servers"] = "localhost:9093"
    return BrokerConfig(properties | {name.replace("_", "."): value for name, value in changes.items()})


def static(folder: Path) -> BrokerConfig:
    return BrokerConfig(node(log_dirs=str(folder / "a")))


def format_folders(config: BrokerConfig, **options: object) -> list[str]:
    lines: list[str] = []
    chosen = FormatOptions(**({"cluster_id": CLUSTER, "standalone": False} | options))  # type: ignore[arg-type]
    format_storage(DISK, ManualClock(), random.Random(1), config, chosen, lines.append)
    return lines


def levels(folder: Path) -> dict[str, int]:
    records = read_bootstrap(DISK, str(folder))
    return {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}


def refusal(config: BrokerConfig, **options: object) -> str:
    with pytest.raises(FormatError) as refused:
        format_folders(config, **options)
    return str(refused.value)


def test_a_dynamic_quorum_of_one(tmp_path: Path) -> None:
    config = dynamic(tmp_path)
    assert not is_formatted(DISK, config)
    lines = format_folders(config, standalone=True)
    assert is_formatted(DISK, config)
    assert lines[0].startswith(
        "Bootstrap metadata: BootstrapMetadata(records=[ApiMessageAndVersion(FeatureLevelRecord("
        "name='metadata.version', featureLevel=30) at version 0), "
    )
    assert lines[0].endswith("], metadataVersionLevel=30, source=format command)")
    assert lines[1:] == [
        f"Formatting dynamic metadata voter directory {tmp_path}/m with metadata.version 4.3-IV0.",
        f"Formatting data directory {tmp_path}/a with metadata.version 4.3-IV0.",
        f"Formatting data directory {tmp_path}/b with metadata.version 4.3-IV0.",
    ]
    ids = set()
    for name in ("a", "b", "m"):
        properties = read_meta_properties(DISK, str(tmp_path / name))
        assert properties is not None
        assert (properties.version, properties.cluster_id, properties.node_id) == (1, CLUSTER, 1)
        ids.add(properties.directory_id)
        assert levels(tmp_path / name)["metadata.version"] == 30
    assert len(ids) == 3
    snapshot = read_snapshot(DISK, str(tmp_path / "m" / SNAPSHOT))
    assert snapshot.kraft_version == 1
    assert snapshot.voters is not None
    (voter,) = snapshot.voters.voters
    assert voter.id == 1
    assert voter.endpoints == (("CONTROLLER", "localhost", 9093),)
    metadata = read_meta_properties(DISK, str(tmp_path / "m"))
    assert metadata is not None
    assert metadata.directory_id == voter.directory_id
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()


def test_meta_properties_is_written_as_in_kafka(tmp_path: Path) -> None:
    format_folders(dynamic(tmp_path), initial_controllers=f"1@localhost:9093:{DIRECTORY}")
    assert (tmp_path / "m" / "meta.properties").read_text() == (
        "#\n#Tue Nov 14 22:13:20 UTC 2023\n"
        f"node.id=1\ndirectory.id={DIRECTORY}\nversion=1\ncluster.id={CLUSTER}\n"
    )


@pytest.mark.parametrize(
    ("node_id", "kind"), [("1", "dynamic metadata voter directory"), ("3", "dynamic metadata directory")]
)
def test_a_dynamic_quorum_of_two(tmp_path: Path, node_id: str, kind: str) -> None:
    voters = f"2@[::1]:1:{OTHER},1@localhost:9093:{DIRECTORY}"
    lines = format_folders(dynamic(tmp_path, node_id=node_id), initial_controllers=voters)
    assert lines[1] == f"Formatting {kind} {tmp_path}/m with metadata.version 4.3-IV0."
    snapshot = read_snapshot(DISK, str(tmp_path / "m" / SNAPSHOT))
    assert snapshot.voters is not None
    assert [
        (voter.id, format_uuid(voter.directory_id), *voter.endpoints) for voter in snapshot.voters.voters
    ] == [
        (1, DIRECTORY, ("CONTROLLER", "localhost", 9093)),
        (2, OTHER, ("CONTROLLER", "::1", 1)),
    ]
    metadata = read_meta_properties(DISK, str(tmp_path / "m"))
    assert metadata is not None and metadata.directory_id is not None
    assert (format_uuid(metadata.directory_id) == DIRECTORY) == (node_id == "1")


def test_a_static_quorum_has_no_snapshot(tmp_path: Path) -> None:
    lines = format_folders(static(tmp_path))
    assert lines[1] == f"Formatting metadata directory {tmp_path}/a with metadata.version 4.3-IV0."
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "bootstrap.checkpoint",
        "meta.properties",
    ]


def test_no_initial_controllers_writes_no_voters(tmp_path: Path) -> None:
    lines = format_folders(dynamic(tmp_path), no_initial_controllers=True)
    assert lines[1] == f"Formatting metadata directory {tmp_path}/m with metadata.version 4.3-IV0."
    assert not (tmp_path / "m" / "__cluster_metadata-0").exists()


def test_the_defaults_format_a_single_node_cluster(tmp_path: Path) -> None:
    config = dynamic(tmp_path)
    format_storage(DISK, ManualClock(), random.Random(1), config)
    properties = read_meta_properties(DISK, config.metadata_log_dir)
    assert properties is not None
    assert len(parse_uuid(properties.cluster_id or "")) == 16
    assert (tmp_path / "m" / SNAPSHOT).exists()
    format_storage(DISK, ManualClock(), random.Random(2), static(tmp_path / "static"))
    assert is_formatted(DISK, static(tmp_path / "static"))


def test_release_version_and_features_choose_the_levels(tmp_path: Path) -> None:
    format_folders(static(tmp_path / "1"), release_version="3.9")
    assert levels(tmp_path / "1" / "a") == {"metadata.version": 21}
    format_folders(static(tmp_path / "2"), features={"metadata.version": 20})
    assert levels(tmp_path / "2" / "a") == {"metadata.version": 20}
    format_folders(
        static(tmp_path / "3"), features={"group.version": 1, "eligible.leader.replicas.version": 0}
    )
    given = levels(tmp_path / "3" / "a")
    assert given["group.version"] == 1
    assert "eligible.leader.replicas.version" not in given
    assert list(given) == ["metadata.version", *sorted(given.keys() - {"metadata.version"})]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"features": {"metadata.version": 20}, "release_version": "3.9"},
            "Use --release-version instead of",
        ),
        ({"features": {"metadata.version": 99}}, "metadata.version 99 is not supported"),
        ({"features": {"bogus": 1}}, "Unsupported feature: bogus. Supported features are: eligible.leader"),
        ({"features": {"group.version": 9}}, "No feature:group.version with feature level 9"),
        (
            {"features": {"eligible.leader.replicas.version": 1}, "release_version": "3.9"},
            "eligible.leader.replicas.version could not be set to 1 because it depends on "
            "metadata.version level 23",
        ),
        (
            {"release_version": "3.2"},
            "Unknown metadata.version '3.2'. Supported metadata.version are: 3.3-IV3, ",
        ),
        (
            {"features": {"kraft.version": 1}},
            "Cannot set kraft.version to 1 unless controller.quorum.voters is empty",
        ),
        ({"standalone": True}, "You cannot specify controller.quorum.voters and format the node with"),
        ({"cluster_id": ""}, "The cluster id is empty"),
    ],
    ids=str,
)
def test_invalid_options_of_a_static_quorum_are_refused(
    tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    assert refusal(static(tmp_path), **options).startswith(sentence)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Because controller.quorum.voters is not set on this controller, you must specify one of"),
        ({"standalone": True, "features": {"kraft.version": 0}}, "Cannot set kraft.version to 0 if"),
        ({"initial_controllers": "foo"}, "--initial-controllers: The voter 'foo' is invalid"),
        ({"initial_controllers": ""}, "--initial-controllers: No voters given."),
        (
            {"initial_controllers": f"1@h:1:{DIRECTORY},1@h:2:{OTHER}"},
            "--initial-controllers: Node id 1 was specified more than once.",
        ),
    ],
    ids=str,
)
def test_invalid_options_of_a_dynamic_quorum_are_refused(
    tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    assert refusal(dynamic(tmp_path), **options).startswith(sentence)


def test_standalone_requires_the_controller_role(tmp_path: Path) -> None:
    broker = dynamic(tmp_path, process_roles="broker", listeners="PLAINTEXT://:9092")
    assert refusal(broker, standalone=True) == "You can only use --standalone on a controller."


def test_formatted_folders_are_not_changed(tmp_path: Path) -> None:
    config = dynamic(tmp_path)
    format_folders(config, standalone=True)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert refusal(config, standalone=True) == (
        f"Log directory {tmp_path}/a is already formatted. Use --ignore-formatted to ignore this "
        "directory and format the others."
    )
    lines = format_folders(config, standalone=True, ignore_formatted=True)
    assert lines == ["All of the log directories are already formatted."]
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_new_folder_joins_the_formatted_ones(tmp_path: Path) -> None:
    config = dynamic(tmp_path)
    format_folders(config, standalone=True)
    (tmp_path / "a" / "meta.properties").unlink()
    lines = format_folders(config, standalone=True, ignore_formatted=True)
    assert lines[1:] == [f"Formatting data directory {tmp_path}/a with metadata.version 4.3-IV0."]


def test_folders_of_another_cluster_or_node_are_refused(tmp_path: Path) -> None:
    config = static(tmp_path)
    format_folders(config)
    path = tmp_path / "a" / "meta.properties"
    assert refusal(config, cluster_id="other", ignore_formatted=True) == (
        f"Invalid cluster.id in: {path}. Expected other, but read {CLUSTER}"
    )
    path.write_text(path.read_text().replace("node.id=1", "node.id=2"))
    assert refusal(config, ignore_formatted=True).startswith(
        f"Stored node id 2 doesn't match previous node id 1 in {path}. If you moved your data"
    )
    path.write_text("version=7\n")
    assert refusal(config) == f"Error loading {path}: Unknown meta.properties version number 7"


def test_an_unreadable_folder_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("not a folder")
    lines = format_folders(dynamic(tmp_path), standalone=True)
    assert lines[0] == f"I/O error trying to read log directory {tmp_path}/a. Ignoring..."
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_text("not a folder")
    sentence = f"No available log directories to format: {tmp_path}/x/a (Not a directory)"
    assert refusal(static(tmp_path / "x")) == sentence


class FullDisk(PosixDisk):
    """Takes everything but the last file."""

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        if path.endswith("meta.properties"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write_atomic(path, data, private=private)


def test_a_full_disk_leaves_the_folder_unformatted(tmp_path: Path) -> None:
    config = static(tmp_path)
    with pytest.raises(FormatError, match=f"Error while formatting {tmp_path}/a: No space left on device"):
        format_storage(FullDisk(), ManualClock(), random.Random(1), config)
    assert not is_formatted(DISK, config)
    format_folders(config)
    assert is_formatted(DISK, config)
