"""Checkpoint files: Apache Kafka's format, and the errors for damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.ids import TopicPartition
from moldau.storage.directories.checkpoints import CheckpointError, CleanShutdownFile, OffsetCheckpoint
from moldau.storage.disk.disk import PosixDisk

NAME = "recovery-point-offset-checkpoint"
#: As Apache Kafka 4.3.0 wrote it.
APACHE = b"0\n2\nplain 2 0\nplain 0 12000\n"
OFFSETS = {TopicPartition("plain", 2): 0, TopicPartition("plain", 0): 12000}


def checkpoint(folder: Path) -> OffsetCheckpoint:
    return OffsetCheckpoint(PosixDisk(), str(folder), NAME)


def test_written_checkpoint_has_the_bytes_of_kafka(tmp_path: Path) -> None:
    checkpoint(tmp_path).write(OFFSETS)
    assert (tmp_path / NAME).read_bytes() == APACHE
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_checkpoint_of_kafka_is_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(APACHE)
    assert checkpoint(tmp_path).read() == OFFSETS


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n"])
def test_empty_checkpoint_file_has_no_offsets(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert checkpoint(tmp_path).read() == {}


def test_missing_checkpoint_file_has_no_offsets(tmp_path: Path) -> None:
    assert checkpoint(tmp_path).read() == {}


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na b c\n",
        b"0\n1\na 0 1 2\n",
        b"\xff\xfe\n0\n",
    ],
)
def test_error_for_a_damaged_checkpoint_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(CheckpointError, match=NAME):
        checkpoint(tmp_path).read()


def test_clean_shutdown_file_has_the_bytes_of_apache_kafka(tmp_path: Path) -> None:
    marker = CleanShutdownFile(PosixDisk(), str(tmp_path))
    assert not marker.exists()
    assert marker.read_broker_epoch() is None
    marker.write(12)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":12}'
    assert marker.read_broker_epoch() == 12
    marker.remove()
    assert not marker.exists()
    marker.remove()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":0}', b'{"brokerEpoch":"x"}'])
def test_clean_shutdown_file_without_a_broker_epoch_is_valid(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    marker = CleanShutdownFile(PosixDisk(), str(tmp_path))
    assert marker.exists()
    assert marker.read_broker_epoch() is None
