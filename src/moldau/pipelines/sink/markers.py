"""The marker that a task commits with its records, so that a replay detects them.

A marker is an offset that the task commits in the transaction of its records, for a group named after query
and task: the id of the next batch. Records and marker appear together or not at all. Spark replays only the
last batch of a query, so one marker per task is enough.

The marker's metadata holds the number of rows, the run of the query and the write. A different number of rows
means that Spark partitioned the batch differently, and neither skipping nor writing the task would be right.
Run and write distinguish two writes of one batch from a replay.

Brokers delete the offsets of a group without members after `offsets.retention.minutes` (a week): a query that
stopped in the middle of a batch must be restarted before that.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.sink.errors import CheckpointTooOld, OtherRows, TwoWrites
from moldau.pipelines.sink.task_context import TaskIdentity

logger = logging.getLogger(__name__)


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
    """Return the marker of this batch if an earlier attempt has written it."""
    newest = max(committed.values(), key=lambda offset: offset.offset, default=None)
    if newest is None or newest.offset <= identity.batch:
        return None
    if newest.offset > identity.batch + 1:
        raise CheckpointTooOld(
            f"Task {identity.task} of query {identity.query} has already written batch {newest.offset - 1}, "
            f"but its checkpoint is at batch {identity.batch}: the checkpoint is older than the topics. "
            "Restore the latest checkpoint, or give the query an empty checkpoint folder to start again "
            "and write all records a second time."
        )
    marker = Marker(**json.loads(newest.metadata))
    if marker.run == identity.run and marker.write != identity.write:
        raise TwoWrites(
            f"Batch {identity.batch} is written twice to the same sink, and the second write cannot be "
            "distinguished from a replay of the first. Set a different option 'sinkId' for each write of a "
            "foreachBatch function."
        )
    return marker


def check_rows(marker: Marker, identity: TaskIdentity, rows: int, *, fewer_allowed: bool = False) -> None:
    """Check that an earlier run wrote as many rows, or more if input was lost since."""
    if marker.rows == rows:
        return
    if rows < marker.rows and fewer_allowed:
        logger.warning(
            "Task %s of batch %s had %s rows when it was written, and has %s after a loss of input. The "
            "records that were written are kept.",
            *(identity.task, identity.batch, marker.rows, rows),
        )
        return
    raise OtherRows(
        f"Task {identity.task} of batch {identity.batch} had {marker.rows} rows when it was written, and has "
        f"{rows} when the batch is replayed: Spark partitions the batch differently, or its rows are not "
        "deterministic. Run the query as it was when it stopped (the same number of cores, "
        "spark.sql.shuffle.partitions, repartition and coalesce, spark.sql.adaptive.enabled=false) until the "
        "batch is complete; then change it. If the source has lost records, set the sink's option "
        "failOnDataLoss to false: the records that were written are kept and the others are written. Some "
        "records may then be duplicates."
    )
