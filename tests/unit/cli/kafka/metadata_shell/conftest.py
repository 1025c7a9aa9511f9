"""A shell over an image, and the folder of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka.metadata_shell.commands import Shell
from moldau.cli.kafka.metadata_shell.tree import Root
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import encode_record
from moldau.quorum.batches import data_batch
from moldau.quorum.snapshots import SnapshotId, encode_snapshot
from tests.unit.cli.kafka.metadata_shell.records import RECORDS
from tests.unit.metadata.builders import image_of, topic


@pytest.fixture
def image() -> MetadataImage:
    return image_of(*RECORDS)


@pytest.fixture
def shell(image: MetadataImage) -> Shell:
    tree = Root(image, 1_700_000_000_840).directory()
    return Shell(lambda: tree)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a node: a snapshot, and a log with later records."""
    metadata = tmp_path / "__cluster_metadata-0"
    metadata.mkdir()
    snapshot = encode_snapshot(RECORDS, 30, epoch=1, time_ms=5, last_contained_log_timestamp=5)
    (metadata / SnapshotId(100, 1).file_name).write_bytes(snapshot)
    before = data_batch([encode_record(topic(50, "forgotten")[0], 30)], 99, 1, 6)
    after = data_batch([encode_record(record, 30) for record in topic(60, "later")], 100, 2, 7000)
    (metadata / "00000000000000000050.log").write_bytes(b"not even read")
    (metadata / "00000000000000000099.log").write_bytes(before + after)
    return tmp_path
