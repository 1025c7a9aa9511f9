"""Records with header names that are not UTF-8, which Kafka's clients do not write."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.client.batches.writer import BatchWriter
from moldau.client.wire.settings import ClientSettings
from moldau.protocol.record_reader import Record
from moldau.protocol.record_writer import build_batch

HEADERS = [("\udcff", b"x"), ("fine", b"y"), ("\udc80", None)]


def write_broken_headers(bootstrap: str, partition: TopicPartition, count: int) -> None:
    """Append records with the values 1 to `count`."""
    records = [
        Record(number, 1_700_000_000_000, None, b"%d" % (number + 1), HEADERS) for number in range(count)
    ]
    with BatchWriter(ClientSettings.from_properties({"bootstrap.servers": bootstrap})) as writer:
        writer.write([(partition, build_batch(records))])
        writer.flush()
