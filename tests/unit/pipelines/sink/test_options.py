"""The options and columns of the sink, checked without a cluster."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructType

from moldau.pipelines.options import InvalidOption
from moldau.pipelines.sink.columns import columns_of
from moldau.pipelines.sink.errors import InvalidRows
from moldau.pipelines.sink.options import TRANSACTION_TIMEOUT_MS, read_sink_options

WHERE = {"kafka.bootstrap.servers": "localhost:9092"}


def test_defaults_of_stream_and_batch() -> None:
    stream, batch = read_sink_options(WHERE, stream=True), read_sink_options(WHERE, stream=False)
    assert (stream.exactly_once, batch.exactly_once) == (True, False)
    assert (stream.topic, stream.name, stream.compression) == (None, "", "none")
    assert stream.transaction_timeout_ms == TRANSACTION_TIMEOUT_MS


def test_names_are_case_insensitive() -> None:
    read = read_sink_options(
        {
            **WHERE,
            "sinkid": "a",
            "topic": " out ",
            "kafka.compression.type": "ZSTD",
            "kafka.transaction.timeout.ms": "5000",
            "kafka.batch.size": "1000",
            "checkpointlocation": "/somewhere",
            "queryname": "q",
        },
        stream=True,
    )
    assert (read.topic, read.name, read.compression) == ("out", "a", "zstd")
    assert (read.transaction_timeout_ms, read.batch_size) == (5000, 1000)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kafka.bootstrap.servers": " "}, "is required: host:port"),
        ({**WHERE, "delivry": "exactly-once"}, "Did you mean 'delivery'"),
        ({**WHERE, "kafka.acks": "1"}, "must be all for delivery=exactly-once"),
        ({**WHERE, "kafka.transactional.id": "x"}, "each task has its own"),
        ({**WHERE, "kafka.compression.type": "rar"}, "one of none, gzip, snappy, lz4, zstd"),
        ({**WHERE, "kafka.batch.size": "big"}, "must be a number"),
        ({**WHERE, "kafka.partitioner.class": "x"}, "the column 'partition' names"),
    ],
)
def test_invalid_options_are_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        read_sink_options(given, stream=True)


def test_columns_to_write() -> None:
    schema = StructType().add("extra", StringType()).add("value", StringType()).add("topic", StringType())
    rows = pa.RecordBatch.from_pydict({"extra": ["x"], "value": ["é"], "topic": ["t"]})
    columns = columns_of(schema, None)
    assert columns.of(rows).to_pydict() == {"topic": ["t"], "value": ["é".encode()]}
    assert columns.first_topic(rows) == "t"
    assert columns_of(schema, "u").of(rows).to_pydict() == {"value": ["é".encode()]}
    with pytest.raises(InvalidRows, match="null topic"):
        columns.of(rows.set_column(2, "topic", pa.array([None], pa.string())))
    with pytest.raises(InvalidRows, match="topic option required"):
        columns_of(StructType().add("value", BinaryType()), None)
