"""The contract between the task and a table format.

A commit is atomic: it makes the changes visible and stores the next offsets of the connector's partitions,
or does neither. It succeeds only if the offsets in the table are still those that the task knows
(`expected`); otherwise another task has written in between, and nothing is committed. This makes delivery
exactly once: a task that was killed, or has lost its partitions without knowing, cannot add a record twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.lake.rows.keys import Changes
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError

Offsets = Mapping[TopicPartition, int]


class OffsetConflict(ConnectError):
    """The table's offsets are not those that the task knows: another task has written."""


class LakeUnavailable(RetriableError):
    """The catalog or the storage did not answer, or refused a write that may succeed later."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes of a table, the columns they need, and the offsets before and after them."""

    schema: pa.Schema
    changes: Changes
    expected: Mapping[TopicPartition, int | None]
    offsets: Offsets
    #: The columns that identify a row; empty if the table has no key.
    key: tuple[str, ...] = ()

    def is_stored(self, stored: Offsets) -> bool:
        """Return whether an earlier attempt has succeeded; `OffsetConflict` if another task has written."""
        if all(stored.get(each) == at for each, at in self.offsets.items()):
            return True
        for each, at in self.expected.items():
            if stored.get(each) != at:
                raise OffsetConflict(
                    f"The table holds the records of {each} up to offset {stored.get(each)}, not {at}: "
                    "another task has written it."
                )
        return False


class LakeTable(Protocol):
    """One table. It need not exist before the first commit."""

    name: str
    #: Whether columns can become wider, and whether there is a type for times of day.
    widens: bool
    has_times: bool

    def load(self, partitions: Iterable[TopicPartition]) -> tuple[pa.Schema | None, Offsets]:
        """Return the columns, None if there is no table yet, and the connector's offsets of partitions."""
        ...

    def commit(self, commit: Commit) -> None:
        """Apply the commit; `OffsetConflict` or `LakeUnavailable` if it was not."""
        ...

    def maintain(self) -> None:
        """Merge small files and remove old versions, if it is time for it."""
        ...

    def set_offsets(self, changes: Mapping[TopicPartition, int | None]) -> None:
        """Change the stored offsets; None removes one."""
        ...


def offsets_text(offsets: Offsets) -> str:
    """Return offsets as JSON, partitions by topic."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics, separators=(",", ":"))


def parsed_offsets(text: str | None) -> dict[TopicPartition, int]:
    """Return the offsets of such a text; none if it is missing."""
    topics: dict[str, dict[str, Any]] = json.loads(text) if text else {}
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }


def changed(offsets: Offsets, changes: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
    """Return the offsets with changes; None removes one."""
    merged = {**offsets, **changes}
    return {each: at for each, at in merged.items() if at is not None}
