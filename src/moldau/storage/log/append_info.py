"""What goes into an append and what comes out of it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError


class Origin(enum.Enum):
    """Who appends: what a client sends is checked, the node's own parts are trusted."""

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()
    REPLICATION = enum.auto()
    RAFT_LEADER = enum.auto()


class AppendInfo(NamedTuple):
    """`log_append_time` is -1 unless the broker sets timestamps; a duplicate has its first offsets."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool
    size: int


class RecordError(NamedTuple):
    batch_index: int
    message: str


class InvalidRecords(KafkaError):
    """Records inside a batch break a rule of the topic; `record_errors` tells which ones."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)


class UnexpectedOffset(KafkaError):
    """A follower was given batches that begin before its log end."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset
