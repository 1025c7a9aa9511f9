"""Kafka's `partition.metadata`: which topic id a partition's folder belongs to.

A topic deleted and created again has the same name and another id; the file keeps the old folder from being
taken for the new topic's.
"""

from __future__ import annotations

from moldau.base.ids import Uuid, format_uuid, parse_uuid
from moldau.storage.disk.disk import Disk

FILE_NAME = "partition.metadata"


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """The id, or None when there is no file; `ValueError` for a file that cannot be understood."""
    path = f"{directory}/{FILE_NAME}"
    try:
        text = disk.read_bytes(path).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text") from error
    if not text.strip("\0\n "):
        # Created just before a power cut.
        return None
    values = dict(_split(path, line) for line in text.splitlines() if line.strip())
    if values.get("version") != "0" or "topic_id" not in values:
        raise ValueError(f"{path}: expected version 0 and a topic_id")
    return parse_uuid(values["topic_id"])


def write_topic_id(disk: Disk, directory: str, topic_id: Uuid) -> None:
    """Quick, since it happens for every new partition: nobody waits for the disk before `sync_topic_id`."""
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
