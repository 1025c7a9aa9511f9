"""`spark.read.format("moldau")`: columns, starting and ending positions, errors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from moldau.base.ids import TopicPartition
from tests.pipelines.source.topics import Topics, read

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


def values(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def test_all_columns_with_every_compression_type(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(2, retention_ms="-1")
    expected = []
    for number, compression in enumerate(COMPRESSIONS):
        records: list[dict[str, Any]] = [
            {
                "key": None if n % 3 == 0 else f"key-{n}",
                "value": None if n % 5 == 0 else f"{compression}-{n}" * n,
                "partition": number % 2,
                "timestamp": 1_700_000_000_000 + 1000 * number + n,
                "headers": [("h", b"x" * n), ("h", None)] if n % 2 else [],
            }
            for n in range(1, 31)
        ]
        topics.produce(topic, records, compression_type=compression, linger_ms="50")
        expected += records
    frame = read(spark, topics, subscribe=topic, includeHeaders=True)
    rows = frame.orderBy("timestamp").collect()
    assert frame.count() == len(rows) == len(expected)
    assert frame.columns == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    offsets = [0, 0]
    for row, record in zip(rows, expected, strict=True):
        at = datetime.fromtimestamp(record["timestamp"] / 1000, UTC).replace(tzinfo=None)
        assert (row.key and bytes(row.key).decode(), row.value and bytes(row.value).decode()) == (
            record["key"],
            record["value"],
        )
        assert (row.topic, row.partition, row.timestampType) == (topic, record["partition"], 0)
        assert row.timestamp.astimezone(UTC).replace(tzinfo=None) == at
        assert row.offset == offsets[row.partition]
        offsets[row.partition] += 1
        assert row.headers is None or [(h.key, h.value and bytes(h.value)) for h in row.headers] == [
            (name, value or None) for name, value in record["headers"]
        ]
        assert (row.headers is None) == (record["headers"] == [])
    without = read(spark, topics, subscribe=topic)
    assert "headers" not in without.columns
    assert without.where("key is null").select("offset").count() == 50


def test_starting_and_ending_positions(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(2, retention_ms="-1")
    for partition in (0, 1):
        topics.produce(
            topic,
            [
                {"value": str(100 * partition + n), "partition": partition, "timestamp": 1000 + n}
                for n in range(10)
            ],
        )
    whole = [*range(10), *range(100, 110)]

    def found(**given: Any) -> list[int]:
        return values(read(spark, topics, **given))

    assert found(subscribePattern=f"^{topic}$") == whole
    assert found(assign=f'{{"{topic}":[1]}}') == whole[10:]
    ends = {
        "startingOffsets": f'{{"{topic}":{{"0":3,"1":-2}}}}',
        "endingOffsets": f'{{"{topic}":{{"0":5,"1":-1}}}}',
    }
    assert found(subscribe=topic, **ends) == [3, 4, *range(100, 110)]
    assert found(subscribe=topic, startingTimestamp=1007, endingTimestamp=1009) == [7, 8, 107, 108]
    assert found(
        subscribe=topic,
        startingOffsetsByTimestamp=f'{{"{topic}":{{"0":1008,"1":9999}}}}',
        startingOffsetsByTimestampStrategy="latest",
    ) == [8, 9]
    cut = read(spark, topics, subscribe=topic, minPartitions=5, maxRecordsPerPartition=4)
    assert values(cut) == whole
    assert cut.select(spark_partition_id().alias("task")).distinct().count() == 6
    assert values(read(spark, topics, subscribePattern="no such topic")) == []


def test_aborted_transaction_is_not_read(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": topics.bootstrap_servers, "transactional.id": topic}
    )
    producer.init_transactions(30)
    for number, commits in enumerate([True, False, True]):
        producer.begin_transaction()
        producer.produce(topic, str(number))
        producer.flush(30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    assert values(read(spark, topics, subscribe=topic)) == [0, 2]
    everything = {"kafka.isolation.level": "read_uncommitted"}
    assert values(read(spark, topics, subscribe=topic, **everything)) == [0, 1, 2]


def test_deleted_records_are_a_loss(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(10))
    topics.admin.delete_records({TopicPartition(topic, 0): 6})
    wanted = {"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"0":2}}}}'}
    with pytest.raises(
        Exception, match=r"offsets 2 to 5 were deleted; the log start offset is 6 \(4 records\)"
    ):
        read(spark, topics, **wanted).count()
    assert values(read(spark, topics, failOnDataLoss=False, **wanted)) == [6, 7, 8, 9]
    with pytest.raises(Exception, match="offset 20 is requested, but the partition ends at 10"):
        read(spark, topics, subscribe=topic, endingOffsets=f'{{"{topic}":{{"0":20}}}}').count()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": "no-such-topic"}, "Unknown topic no-such-topic. Create it"),
        ({"assign": '{"TOPIC":[0,7]}'}, "names partitions that do not exist: TOPIC-7"),
        (
            {"subscribe": "TOPIC", "startingOffsets": '{"TOPIC":{"0":0}}'},
            "must name exactly the subscribed partitions",
        ),
        ({"subscribe": "TOPIC", "startingTimestamp": "99999999999999"}, "ByTimestampStrategy to latest"),
        ({"subscribe": "TOPIC", "startingOffset": "earliest"}, "Did you mean 'startingOffsets'"),
        (
            {
                "subscribe": "TOPIC",
                "kafka.bootstrap.servers": "localhost:1",
                "kafka.default.api.timeout.ms": "500",
            },
            "cannot connect to localhost:1",
        ),
    ],
)
def test_errors_name_cause_and_remedy(
    spark: SparkSession, topics: Topics, given: dict[str, str], said: str
) -> None:
    topic = topics.create(2)
    wanted = {name: value.replace("TOPIC", topic) for name, value in given.items()}
    with pytest.raises(Exception, match=said.replace("TOPIC", topic)):
        read(spark, topics, **wanted).count()


def test_schema_cannot_be_set(spark: SparkSession, topics: Topics) -> None:
    reader = spark.read.format("moldau").option("kafka.bootstrap.servers", topics.bootstrap_servers)
    with pytest.raises(Exception, match="columns of a topic are fixed"):
        reader.option("subscribe", "x").schema("value string").load().count()
