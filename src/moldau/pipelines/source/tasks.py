"""One task: a range of one partition, read where Spark runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

from moldau.base.errors import KafkaError
from moldau.base.ids import Uuid
from moldau.pipelines.source import loss
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import Range
from moldau.pipelines.source.query_name import tell
from moldau.pipelines.source.watch import ABSENT


class RangeTask(InputPartition):
    """Travels to the task pickled. `topic_id` is the topic's when the task was planned, `name_box` the folder
    of `query_name`."""

    def __init__(self, wanted: Range, topic_id: Uuid | None = None, name_box: str | None = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.topic_id = topic_id
        self.name_box = name_box


def read_task(options: SourceOptions, task: InputPartition) -> Iterator[Any]:
    """The records of a task as Arrow batches. Spark makes a task of its own where we have planned none."""
    if not isinstance(task, RangeTask):
        return iter(())
    if task.name_box is not None:
        tell(task.name_box)
    if task.wanted.size == 0:
        return iter(())
    return _read(options, task.wanted, task.topic_id)


def _read(options: SourceOptions, wanted: Range, topic_id: Uuid | None) -> Iterator[Any]:
    # Only tasks need the decoder, and it is slow to import.
    from moldau.pipelines.arrow.reading import RangeRequest, RecordsGone, TopicReplaced, read_range

    (topic, partition), start, end = wanted
    fail = options.fail_on_data_loss
    try:
        yield from read_range(
            options.patient_settings,
            RangeRequest(topic, partition, start, end, topic_id),
            include_headers=options.include_headers,
            read_committed=options.read_committed,
            fail_on_data_loss=fail,
        )
    except RecordsGone as gone:
        loss.stop_or_warn(str(gone), fail=fail)
    except TopicReplaced as replaced:
        loss.stop_or_warn(str(replaced), fail=fail, made_anew=True)
    except KafkaError as error:
        if error.code not in ABSENT:
            raise
        loss.stop_or_warn(f"{wanted.partition} was deleted while it was read", fail=fail)
