"""Metadata records for the tests of the metadata shell."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.metadata_shell.commands import Shell
from moldau.cli.kafka.metadata_shell.tree import Root
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    RegisterControllerRecord,
    UserScramCredentialRecord,
)
from tests.unit.metadata.builders import broker, features, image_of, topic, uid

RECORDS = [
    *features(),
    broker(1),
    broker(2, rack="r1", fenced=True),
    RegisterControllerRecord(controller_id=1, incarnation_id=uid(5)),
    *topic(7, "orders", 2, (1, 2)),
    *topic(8, "other"),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
    ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
    ClientQuotaRecord(
        entity=[
            EntityData(entity_type="user", entity_name=None),
            EntityData(entity_type="client-id", entity_name="a(b"),
        ],
        key="producer_byte_rate",
        value=1e7,
        remove=False,
    ),
    AccessControlEntryRecord(
        id=uid(9),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:bob",
        host="*",
        operation=3,
        permission_type=3,
    ),
    UserScramCredentialRecord(
        name="bob", mechanism=1, salt=b"\x01\xff", stored_key=b"\x02", server_key=b"\x03", iterations=4096
    ),
]


@pytest.fixture
def image() -> MetadataImage:
    return image_of(*RECORDS)


@pytest.fixture
def shell(image: MetadataImage) -> Shell:
    tree = Root(image, 1_700_000_000_840).directory()
    return Shell(lambda: tree)


def run(shell: Shell, line: str) -> list[str]:
    return list(shell.run(line.split()))
