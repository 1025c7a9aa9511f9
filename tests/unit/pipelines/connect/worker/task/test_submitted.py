"""Which offsets of a source may be stored: those of acknowledged records, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.worker.task.submitted import SubmittedRecords

PARTITION = {"file": "a"}


def record(offset: Mapping[str, Any] | None) -> SourceRecord:
    return SourceRecord(topic="t", source_partition=PARTITION, source_offset=offset)


def test_an_offset_waits_for_earlier_records() -> None:
    records = SubmittedRecords("c")
    first, second = (records.submit(record({"at": number})) for number in (1, 2))
    records.acknowledge(second)
    assert records.committable() == []
    records.acknowledge(first)
    assert records.committable() == [(PARTITION, {"at": 2})]
    assert records.committable() == []


def test_a_record_without_an_offset_leaves_the_earlier_one() -> None:
    records = SubmittedRecords("c")
    for offset in ({"at": 1}, None):
        records.acknowledge(records.submit(record(offset)))
    assert records.committable() == [(PARTITION, {"at": 1})]


def test_a_forgotten_partition_is_a_tombstone() -> None:
    records = SubmittedRecords("c")
    records.acknowledge(records.submit(record({"at": 1})))
    records.submit_offset(PARTITION, None)
    assert records.committable() == [(PARTITION, None)]
