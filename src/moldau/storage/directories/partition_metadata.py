"""Kafka's `partition.metadata` file: the topic id of a partition's directory.

A topic that is deleted and created again has the same name and a different id; the file keeps the directory
of the old topic from being used for the new one.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid, format_uuid, parse_uuid
from moldau.storage.disk.disk import Disk

FILE_NAME = "partition.metadata"


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """Return the id, or None without a file; `ValueError` if the file is malformed."""
    path = f"{directory}/{FILE_NAME}"
    try:
        text = disk.read_bytes(path).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text") from error
    if not text.strip("\0\n "):
        # The file was created just before a power cut.
        return None
    values = dict(_split(path, line) for line in text.splitlines() if line.strip())
    if values.get("version") != "0" or "topic_id" not in values:
        raise ValueError(f"{path}: expected version 0 and a topic_id")
    return parse_uuid(values["topic_id"])


def matching_topic_id(disk: Disk, directory: str, topic_id: Uuid | None) -> Uuid | None:
    """Return the stored id, None if there is none; INCONSISTENT_TOPIC_ID if it is not `topic_id`."""
    try:
        stored = read_topic_id(disk, directory)
    except ValueError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    if stored is not None and topic_id is not None and stored != topic_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"{directory} belongs to topic id {format_uuid(stored)}, not {format_uuid(topic_id)}",
        )
    return stored


def write_topic_id(disk: Disk, directory: str, topic_id: Uuid) -> None:
    """Write without waiting for the disk, as it happens for every new partition; see `sync_topic_id`."""
    file = disk.open(f"{directory}/{FILE_NAME}", create=True)
    file.pwrite((f"version: 0\ntopic_id: {format_uuid(topic_id)}".encode(),), 0)
    file.close()


def sync_topic_id(disk: Disk, directory: str) -> None:
    file = disk.open(f"{directory}/{FILE_NAME}")
    file.sync()
    file.close()


def _split(path: str, line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise ValueError(f"{path}: expected name: value, found {line!r}")
    return name.strip(), value.strip()
