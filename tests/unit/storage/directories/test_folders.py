"""Names of folders in a log directory."""

from __future__ import annotations

import pytest

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.storage.directories.folders import (
    FolderKind,
    delete_folder,
    future_folder,
    parse_folder,
    stray_folder,
)

UNIQUE = Uuid(bytes(range(16)))
HEX = "000102030405060708090a0b0c0d0e0f"


def test_partition_folder_name_is_parsed() -> None:
    assert parse_folder("orders-0") == (TopicPartition("orders", 0), FolderKind.CURRENT)
    assert parse_folder("a-b.c-12") == (TopicPartition("a-b.c", 12), FolderKind.CURRENT)
    assert parse_folder("to-delete-1") == (TopicPartition("to-delete", 1), FolderKind.CURRENT)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (delete_folder, FolderKind.DELETE),
        (stray_folder, FolderKind.STRAY),
        (future_folder, FolderKind.FUTURE),
    ],
)
def test_suffixed_folder_name_is_formatted_and_parsed(make, kind) -> None:
    partition = TopicPartition("my.topic-x", 3)
    name = make(partition, UNIQUE)
    assert name == f"my.topic-x-3.{HEX}-{kind.value}"
    assert parse_folder(name) == (partition, kind)


@pytest.mark.parametrize("make", [delete_folder, stray_folder])
def test_long_topic_name_is_shortened_to_a_valid_file_name(make) -> None:
    name = make(TopicPartition("t" * 249, 11), UNIQUE)
    assert len(name) == 255
    assert parse_folder(name).topic_partition.partition == 11


@pytest.mark.parametrize(
    "name",
    ["", "lost+found", "orders", "orders-", "-0", "orders-x", "orders-delete", "orders-0-delete",
     "orders.abc-delete", "orders-0.-stray", "orders-0-future", "orders-٣"],
)  # fmt: skip
def test_unknown_folder_names_are_refused(name: str) -> None:
    with pytest.raises(KafkaError, match="not of the form topic-partition") as raised:
        parse_folder(name, "/data")
    assert f"/data/{name}" in str(raised.value)
