"""Identifiers. A `Uuid` is 16 raw bytes, which are fast to decode, hash and compare; text is for users."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple, NewType, Protocol

Uuid = NewType("Uuid", bytes)
TopicId = Uuid
DirectoryId = Uuid

ZERO_UUID = Uuid(bytes(16))
#: Reserved directory ids (KIP-858) of replicas whose directory is not known.
MIGRATING_DIR = Uuid(bytes(16))
UNASSIGNED_DIR = Uuid(bytes(15) + b"\x01")
LOST_DIR = Uuid(bytes(15) + b"\x02")
#: Kafka never assigns ids below 100; 1 is the metadata topic.
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
METADATA_TOPIC = "__cluster_metadata"
#: The topics of the coordinators.
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})


class TopicPartition(NamedTuple):
    """A topic name and a partition number; `str()` is the name of its folder."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Randomness(Protocol):
    """A source of randomness, such as `random.Random` and `random.SystemRandom`."""

    def getrandbits(self, k: int, /) -> int: ...

    def randrange(self, start: int, stop: int, /) -> int: ...


def random_uuid(randomness: Randomness) -> Uuid:
    """Return a version 4 UUID whose text does not begin with a dash, as Kafka's tools require."""
    while True:
        raw = bytearray(randomness.getrandbits(128).to_bytes(16, "big"))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        candidate = Uuid(bytes(raw))
        if not format_uuid(candidate).startswith("-"):
            return candidate


def format_uuid(value: Uuid) -> str:
    """Kafka's text form: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")


def parse_uuid(text: str) -> Uuid:
    """Parse Kafka's text form; `ValueError` unless it is exactly 16 bytes."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not an id in URL-safe base64: {text!r}") from error
    if len(raw) != 16:
        raise ValueError(f"an id has 16 bytes, {text!r} has {len(raw)}")
    return Uuid(raw)
