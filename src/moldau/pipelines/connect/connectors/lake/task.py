"""The task of the table sinks: buffers rows per table and commits them with their offsets.

Each task commits for itself. The offsets of its partitions are stored in the table by the same commit as
the rows (see `store`), so a record below the stored offset is skipped, and a restarted task continues
exactly there. The offsets of the consumer group follow and serve lag tools and connectors with several
tables.

The worker asks for offsets to commit (`pre_commit`); the task requests that again as long as rows wait, so
that the commit interval of the tables is kept however rarely the worker commits.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.lake.routing import Routing
from moldau.pipelines.connect.connectors.lake.rows.blocks import Blocks, RowRules
from moldau.pipelines.connect.connectors.lake.rows.evolution import Evolution
from moldau.pipelines.connect.connectors.lake.rows.keys import Upsert, key_columns
from moldau.pipelines.connect.connectors.lake.settings import (
    AUTO_CREATE,
    CASE_INSENSITIVE,
    CHANGE_FIELD,
    COMMIT_ROWS,
    EVOLVE,
    FORCE_OPTIONAL,
    INTERVAL,
    REPLACE_NULL,
    RETRY,
    TASK_INDEX,
    LakeSettings,
)
from moldau.pipelines.connect.connectors.lake.store import (
    Commit,
    LakeTable,
    LakeUnavailable,
    OffsetConflict,
)
from moldau.pipelines.connect.data.errors import ConnectError, DataError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkContext, SinkTask

logger = logging.getLogger(__name__)

_MAX_BYTES: Final = 256 << 20
_FIRST_WAIT_S, _MAX_WAIT_S = 0.5, 30.0
_RETRY_PUT_MS: Final = 1000
_PATIENCE_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)

#: Returns the table of a name.
OpenTable = Callable[[str], LakeTable]


@dataclass(slots=True)
class _Open:
    """A table in use: what it holds already, and the rows that wait."""

    table: LakeTable
    blocks: Blocks
    stored: dict[TopicPartition, int]
    key: tuple[str, ...] = ()
    waiting: set[TopicPartition] = field(default_factory=set)


class LakeSinkTask(SinkTask):
    def __init__(
        self, parse: Callable[[Mapping[str, str]], LakeSettings], lake: Callable[[LakeSettings], OpenTable]
    ) -> None:
        self._parse = parse
        self._lake = lake
        self._tables: dict[str, _Open] = {}
        #: Offsets after the records that were put, and those that the tables hold.
        self._positions: dict[TopicPartition, int] = {}
        self._durable: dict[TopicPartition, int] = {}
        self._began: dict[TopicPartition, int] = {}
        self._committed_at = time.monotonic()
        self._failing_since: float | None = None
        self._retry_at = 0.0
        self._wait_s = _FIRST_WAIT_S
        self._has_failed = False
        #: Where the table continues, by partitions of which no records have arrived yet.
        self._resume: dict[TopicPartition, int] = {}
        #: Whether the worker repeats a call of `put`, and whether its records are read again anyway.
        self._has_refused = False
        self._is_stale = False
        #: Offsets from which records are read, as long as the worker does not know them.
        self._sought: dict[TopicPartition, int] = {}

    def start(self, context: SinkContext) -> None:
        self._context = context
        self._settings = self._parse(context.config)
        self._open_table = self._lake(self._settings)
        self._routing = Routing(self._settings)
        self._maintains = context.config.get(TASK_INDEX, "0") == "0"

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """Note what the tables hold: records below are skipped.

        With one table, reading continues there (see `_resumed`), also if the offsets of the group are ahead.
        """
        for each in self._tables.values():
            each.stored = self._patiently(each.table, partitions)[1]
        if not self._settings.is_single_table:
            return
        stored = self._patiently(self._open_table(self._settings.tables[0]), partitions)[1]
        self._resume |= {each: stored[each] for each in partitions if each in stored}

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self._is_stale:
            # The worker repeats records from before a rewind, and has moved its positions with them.
            self._is_stale = self._has_refused = False
            self._seek(self._positions)
            return
        if self._resume and self._resumed(records):
            return
        try:
            self._put(records)
        except RetriableError:
            self._has_refused = True
            self._context.retry_after(_RETRY_PUT_MS)
            raise
        self._has_refused = False

    def _resumed(self, records: Sequence[SinkRecord]) -> bool:
        """Return whether these records are not those that the table continues with; read others then.

        This happens with the first records, because a consumer cannot seek while it is assigned partitions.
        """
        first: dict[TopicPartition, int] = {}
        for record in records:
            partition = TopicPartition(record.original_topic, record.original_partition)
            first.setdefault(partition, record.original_offset)
        wanted = {each: self._resume.pop(each, at) for each, at in first.items()}
        if wanted == first:
            return False
        self._seek(wanted)
        return True

    def _put(self, records: Sequence[SinkRecord]) -> None:
        if self._is_full() and not self._try_commit():
            if self._sought:
                # The records are read again from there.
                return
            raise RetriableError("The tables do not take the rows that wait; no further records are read.")
        by_table: dict[str, list[SinkRecord]] = defaultdict(list)
        for record in records:
            for name in self._routed(record):
                by_table[name].append(record)
        # A failure below leaves rows without their offsets, which must not be committed.
        self._has_failed = True
        for name, chosen in by_table.items():
            self._add(name, chosen)
        for record in records:
            partition = TopicPartition(record.original_topic, record.original_partition)
            self._began.setdefault(partition, record.original_offset)
            self._positions[partition] = record.original_offset + 1
        self._has_failed, self._sought = False, {}
        self._context.request_commit()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Commit the tables if it is time, and return what they hold and was not returned before."""
        if all(offsets.get(each) == at for each, at in self._sought.items()):
            self._sought = {}
        if self._has_failed:
            return {}
        if self._sought:
            self._context.request_commit()
            return {}
        for partition, at in offsets.items():
            self._positions[partition] = max(at, self._positions.get(partition, at))
        # A part of the partitions: they are taken away.
        is_last = self._context.wait(0) or len(offsets) < len(self._positions)
        due = time.monotonic() - self._committed_at >= self._settings[INTERVAL] / 1000
        if not (due or is_last or self._is_full()) or not self._try_commit():
            if not self._has_failed:
                self._context.request_commit()
            return {}
        return {each: at for each, at in self._durable.items() if each in offsets}

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget the partitions. Rows that wait were committed, or are read again by the next owner."""
        gone = set(partitions)
        for partition in partitions:
            for offsets in (self._positions, self._durable, self._began, self._resume):
                offsets.pop(partition, None)
        if any(each.waiting & gone for each in self._tables.values()):
            self._discard()

    def stop(self) -> None:
        self._tables.clear()

    def _routed(self, record: SinkRecord) -> Sequence[str]:
        """Return the tables of a record that do not hold it yet."""
        tables = self._routing.tables(record)
        if record.value is None and not self._settings.upserts:
            # As in Iceberg's sink, a table without keys ignores records without value.
            return ()
        partition = TopicPartition(record.original_topic, record.original_partition)
        offset = record.original_offset
        try:
            return [each for each in tables if offset >= self._use(each, record).stored.get(partition, 0)]
        except DataError as error:
            self._context.report(record, error)
            return ()

    def _add(self, name: str, records: list[SinkRecord]) -> None:
        opened = self._tables[name]
        for record, error in opened.blocks.add(records):
            self._context.report(record, error)
        opened.waiting.update(
            TopicPartition(each.original_topic, each.original_partition) for each in records
        )

    def _use(self, name: str, record: SinkRecord) -> _Open:
        found = self._tables.get(name)
        if found is None:
            table = self._open_table(name)
            schema, stored = self._loaded(table)
            rules = self._rules(table, record)
            key = rules.upsert.columns if rules.upsert else tuple(self._settings.id_columns(name))
            found = self._tables[name] = _Open(table, Blocks(schema, rules), stored, key)
        return found

    def _loaded(self, table: LakeTable) -> tuple[pa.Schema | None, dict[TopicPartition, int]]:
        partitions = self._context.assignment()
        schema, stored = table.load(partitions)
        if schema is None and not self._settings[AUTO_CREATE]:
            raise ConnectError(
                f"The table {table.name} does not exist. Create it, or set "
                f"{self._settings.prefix}{AUTO_CREATE}=true."
            )
        return schema, dict(stored)

    def _patiently(
        self, table: LakeTable, opened: Iterable[TopicPartition] = ()
    ) -> tuple[pa.Schema | None, dict[TopicPartition, int]]:
        """Load a table where the worker cannot repeat the call; `LakeUnavailable` after some attempts."""
        partitions = {*self._positions, *self._context.assignment(), *opened}
        for wait_s in _PATIENCE_S:
            try:
                schema, stored = table.load(partitions)
                return schema, dict(stored)
            except LakeUnavailable as error:
                logger.warning("The table %s is loaded again in %.1f s: %s", table.name, wait_s, error)
                self._context.wait(wait_s)
        schema, stored = table.load(partitions)
        return schema, dict(stored)

    def _rules(self, table: LakeTable, record: SinkRecord) -> RowRules:
        settings, name = self._settings, table.name
        upsert = None
        if settings.upserts:
            upsert = Upsert(key_columns(settings.id_columns(name), record), settings[CHANGE_FIELD])
        key = frozenset(upsert.columns if upsert else settings.id_columns(name))
        return RowRules(
            Evolution(settings[EVOLVE], settings[FORCE_OPTIONAL], table.widens, key),
            upsert,
            settings[CASE_INSENSITIVE],
            settings[REPLACE_NULL],
            table.has_times,
        )

    def _is_full(self) -> bool:
        rows = sum(each.blocks.rows for each in self._tables.values())
        size = sum(each.blocks.bytes for each in self._tables.values())
        return rows >= self._settings[COMMIT_ROWS] or size >= _MAX_BYTES

    def _try_commit(self) -> bool:
        """Commit all tables with rows. Return False if that has to be repeated later."""
        if time.monotonic() < self._retry_at:
            return False
        try:
            for each in self._tables.values():
                if each.waiting:
                    self._commit(each)
        except OffsetConflict as error:
            logger.warning("Reading again: %s", error)
            self._discard()
            return False
        except LakeUnavailable as error:
            self._failed(error)
            return False
        self._failing_since, self._retry_at, self._wait_s = None, 0.0, _FIRST_WAIT_S
        self._durable.update(self._positions)
        self._committed_at = time.monotonic()
        if self._maintains:
            self._maintain()
        return True

    def _commit(self, opened: _Open) -> None:
        found = opened.blocks.pending()
        if found is not None:
            schema, changes = found
            offsets = {each: max(at, opened.stored.get(each, 0)) for each, at in self._positions.items()}
            expected = {each: opened.stored.get(each) for each in offsets}
            opened.table.commit(Commit(schema, changes, expected, offsets, opened.key))
            opened.blocks.clear(schema)
            opened.stored.update(offsets)
        opened.waiting.clear()

    def _maintain(self) -> None:
        for each in self._tables.values():
            try:
                each.table.maintain()
            except LakeUnavailable as error:
                logger.warning("The table %s is maintained later: %s", each.table.name, error)

    def _failed(self, error: LakeUnavailable) -> None:
        """Wait longer after each failure, and fail when the time for retries is over."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if now - self._failing_since >= self._settings[RETRY] / 1000:
            self._has_failed = True
            raise ConnectError(f"Rows could not be committed: {error}") from error
        logger.warning("Rows are committed again in %.1f s: %s", self._wait_s, error)
        self._retry_at = now + self._wait_s
        self._wait_s = min(self._wait_s * 2, _MAX_WAIT_S)

    def _discard(self) -> None:
        """Forget all rows that wait, and read them again."""
        for each in self._tables.values():
            schema, each.stored = self._patiently(each.table)
            each.blocks.clear(schema)
            each.waiting.clear()
        again = {each: self._durable.get(each, at) for each, at in self._began.items()}
        self._positions = dict(again)
        self._is_stale = self._has_refused
        self._seek(again)

    def _seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets:
            self._sought = dict(offsets)
            self._context.seek(offsets)
            self._context.request_commit()
