"""Read the range of one task, in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

from moldau.base.errors import KafkaError
from moldau.base.ids import Uuid
from moldau.pipelines.source import data_loss
from moldau.pipelines.source.cluster import ABSENT
from moldau.pipelines.source.consumer_group import store_query_name
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import Range


class RangeTask(InputPartition):
    """The pickled input of a task. `topic_id` is that of the topic when the task was planned, `name_folder`
    the folder of `consumer_group.QueryNameFolder`."""

    def __init__(self, wanted: Range, topic_id: Uuid | None = None, name_folder: str | None = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.topic_id = topic_id
        self.name_folder = name_folder


def read_task(options: SourceOptions, task: InputPartition) -> Iterator[Any]:
    """Return the records of a task as Arrow batches. Spark creates a task of its own if none was planned."""
    if not isinstance(task, RangeTask):
        return iter(())
    if task.name_folder is not None:
        store_query_name(task.name_folder)
    if task.wanted.size == 0:
        return iter(())
    return _read(options, task.wanted, task.topic_id)


def _read(options: SourceOptions, wanted: Range, topic_id: Uuid | None) -> Iterator[Any]:
    # Only tasks need the decoder, which is slow to import.
    from moldau.pipelines.arrow.reading import RangeRequest, RecordsGone, TopicReplaced, read_range

    (topic, partition), start, end = wanted
    fail = options.fail_on_data_loss
    try:
        yield from read_range(
            options.connected_settings,
            RangeRequest(topic, partition, start, end, topic_id),
            include_headers=options.include_headers,
            read_committed=options.read_committed,
            fail_on_data_loss=fail,
        )
    except RecordsGone as gone:
        data_loss.stop_or_warn(str(gone), fail=fail)
    except TopicReplaced as replaced:
        data_loss.stop_or_warn(str(replaced), fail=fail, is_recreated=True)
    except KafkaError as error:
        if error.code not in ABSENT:
            raise
        data_loss.stop_or_warn(f"{wanted.partition} was deleted while it was read", fail=fail)
