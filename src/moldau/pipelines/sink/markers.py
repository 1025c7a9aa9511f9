"""What a task leaves behind with its records: that it wrote them.

A marker is an offset which the task commits in the transaction of its records, for a group named after
query and task: the number of the next batch. Records and marker so appear together or not at all, and a
task that runs again finds out which. Only the last batch of a query is ever run again, so one marker for
each task is enough.

The marker's metadata says how many rows there were, in which run of the query and by which write. Rows tell
whether the task of the earlier run had the same part of the batch: if not, Spark cut the batch in another
way, and neither to skip it nor to write it would be right. Run and write tell two writes of one batch from
one that is repeated.

Brokers forget offsets of groups without members after `offsets.retention.minutes` (a week): a query that
stopped in the middle of a batch must be started again before that.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.sink.errors import CheckpointTooOld, OtherRows, TwoWrites
from moldau.pipelines.sink.identity import TaskIdentity

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Marker:
    rows: int
    run: str
    write: str

    def stored(self, batch: int) -> OffsetAndMetadata:
        return OffsetAndMetadata(batch + 1, metadata=json.dumps(asdict(self), separators=(",", ":")))


def marker_of(identity: TaskIdentity, rows: int) -> OffsetAndMetadata:
    return Marker(rows, identity.run, identity.write).stored(identity.batch)


def find_marker(
    committed: Mapping[TopicPartition, OffsetAndMetadata], identity: TaskIdentity
) -> Marker | None:
    """The marker of this very batch, if an earlier attempt wrote it."""
    newest = max(committed.values(), key=lambda offset: offset.offset, default=None)
    if newest is None or newest.offset <= identity.batch:
        return None
    if newest.offset > identity.batch + 1:
        raise CheckpointTooOld(
            f"Task {identity.task} of query {identity.query} has written batch {newest.offset - 1} already, "
            f"and is to write batch {identity.batch}: the checkpoint is older than the topics. Restore its "
            "newest state; or, to begin anew and write again what was written, give the query an empty "
            "checkpoint folder."
        )
    marker = Marker(**json.loads(newest.metadata))
    if marker.run == identity.run and marker.write != identity.write:
        raise TwoWrites(
            f"Batch {identity.batch} is written twice to the same sink, and the second write looks like a "
            "repetition of the first. Give each write of a foreachBatch function an option 'sinkId' of its "
            "own."
        )
    return marker


def check_rows(marker: Marker, identity: TaskIdentity, rows: int, *, fewer_may_be: bool = False) -> None:
    """What an earlier run wrote must be what would be written now, or more if input was lost since."""
    if marker.rows == rows:
        return
    if rows < marker.rows and fewer_may_be:
        _log.warning(
            "Task %s of batch %s had %s rows when it was written, and has %s now that input was lost. It "
            "stays as it was written.",
            *(identity.task, identity.batch, marker.rows, rows),
        )
        return
    raise OtherRows(
        f"Task {identity.task} of batch {identity.batch} had {marker.rows} rows when it was written, and has "
        f"{rows} now that the batch is run again: Spark cuts the batch into tasks in another way, or its "
        "rows depend on something that changes. Start the query once as it was when it stopped (the same "
        "number of cores, spark.sql.shuffle.partitions, repartition and coalesce, "
        "spark.sql.adaptive.enabled=false), until the batch is done; then change what you want. If it is the "
        "source that has lost records meanwhile, set the sink's option failOnDataLoss to false: what was "
        "written stays, and the rest is written. Some of its records may be there twice."
    )
