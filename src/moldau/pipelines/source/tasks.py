"""One task: a range of one partition, read where Spark runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

from moldau.pipelines.source import loss
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import Range
from moldau.pipelines.source.query_name import tell


class RangeTask(InputPartition):
    """Travels to the task pickled. `name_box` is the folder of `query_name`."""

    def __init__(self, wanted: Range, name_box: str | None = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.name_box = name_box


def read_task(options: SourceOptions, task: InputPartition) -> Iterator[Any]:
    """The records of a task as Arrow batches. Spark makes a task of its own where we have planned none."""
    if not isinstance(task, RangeTask):
        return iter(())
    if task.name_box is not None:
        tell(task.name_box)
    if task.wanted.size == 0:
        return iter(())
    return _read(options, task.wanted)


def _read(options: SourceOptions, wanted: Range) -> Iterator[Any]:
    # Only tasks need the decoder, and it is slow to import.
    from moldau.pipelines.arrow.reading import RangeRequest, RecordsGone, read_range

    (topic, partition), start, end = wanted
    try:
        yield from read_range(
            options.patient_settings,
            RangeRequest(topic, partition, start, end),
            include_headers=options.include_headers,
            read_committed=options.read_committed,
            fail_on_data_loss=options.fail_on_data_loss,
        )
    except RecordsGone as gone:
        raise loss.stopping(f"{gone.message}.") from gone
