"""Folders from which a node does not start."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from moldau.quorum.batches import data_batch
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.snapshots import SnapshotId
from moldau.raft.voters import Voter
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import (
    ENDPOINT,
    Node,
    run,
)

DATA = Path(__file__).parent / "data"


FIRST_SEGMENT = "00000000000000000000.log"


def apache_node(tmp_path: Path, kind: str, **settings: object) -> Node:
    shutil.copytree(DATA / kind, tmp_path / "__cluster_metadata-0")
    return Node(tmp_path, **settings)


class TestUnusableFolders:
    def refused(self, node: Node, message: str) -> None:
        async def test() -> None:
            with pytest.raises(UnusableMetadata, match=message):
                await node.make().start()

        run(test)

    def test_unknown_voters_are_rejected(self, tmp_path: Path) -> None:
        self.refused(Node(tmp_path), "Format the folder with --standalone")

    def test_node_outside_the_static_voters_is_rejected(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(2,))
        node.format()
        self.refused(node, "Node 1 is not a voter of the metadata quorum")

    def test_voter_with_another_directory_id_is_rejected(self, tmp_path: Path) -> None:
        node = Node(tmp_path)
        node.format(voters=[Voter(1, uid(55), (ENDPOINT,))])
        self.refused(node, "belongs to a directory with another directory.id")

    def test_damaged_snapshot_is_rejected(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-dynamic")
        path = node.log_folder / SnapshotId(147, 1).file_name
        path.write_bytes(path.read_bytes()[:-10])
        self.refused(node, "00000000000000000147-0000000001.checkpoint is damaged")

    def test_damage_before_the_end_of_the_log_is_rejected(self, tmp_path: Path) -> None:
        node = apache_node(tmp_path, "apache-static", static_voters=(1,))
        path = node.log_folder / FIRST_SEGMENT
        data = bytearray(path.read_bytes())
        data[600] ^= 0xFF
        path.write_bytes(data)
        self.refused(node, "invalid batch at position 421, followed by valid ones")
        assert path.read_bytes() == data

    def test_log_without_its_start_or_a_snapshot_is_rejected(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.log_folder.mkdir()
        record = data_batch([b"\x01\x14\x00\x00"], 500, 1, 1)
        (node.log_folder / "00000000000000000500.log").write_bytes(record)
        self.refused(node, "starts at offset 500, but there is no snapshot")

    def test_unsupported_record_types_are_rejected(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.log_folder.mkdir()
        (node.log_folder / FIRST_SEGMENT).write_bytes(data_batch([b"\x01\x63\x00\x00"], 0, 1, 1))
        self.refused(node, "metadata record type 99 version 0 is not supported")

    def test_inconsistent_records_are_rejected(self, tmp_path: Path) -> None:
        node = Node(tmp_path, static_voters=(1,))
        node.log_folder.mkdir()
        gone = b"\x01\x09\x00" + uid(7) + b"\x00"
        (node.log_folder / FIRST_SEGMENT).write_bytes(data_batch([gone], 0, 1, 1))
        self.refused(node, "which does not exist")
