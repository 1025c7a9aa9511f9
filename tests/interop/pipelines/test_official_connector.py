"""Spark's own Kafka connector and our format read the same rows and batches, from Moldau and Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row, SparkSession

from tests.harness.waiting import eventually
from tests.interop import jars
from tests.interop.conftest import JavaTool, Node
from tests.pipelines.source.topics import Collected, Topics, options

pytestmark = pytest.mark.interop

FORMATS = ("kafka", "moldau")
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def _end_java() -> None:
    """Jars are set when the JVM starts, so this session and the ones after it need a new JVM."""
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from moldau import pipelines

    try:
        needed = jars.spark_connector_jars()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    _end_java()
    session = pipelines.session(
        "official",
        master="local[2]",
        connector="official",
        quick_start=True,
        config={
            "spark.jars": ",".join(map(str, needed)),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()
    _end_java()


@pytest.fixture(scope="module", params=["moldau", "apache"])
def topics(request: pytest.FixtureRequest) -> Iterator[Topics]:
    node: Node = request.getfixturevalue(request.param)
    found = Topics(node.bootstrap_servers)
    yield found
    found.close()


def read(spark: SparkSession, topics: Topics, format_name: str, given: dict[str, Any]) -> DataFrame:
    # The official connector reads aborted records by default; ours does not.
    wanted = {"kafka.isolation.level": "read_committed", **given}
    return spark.read.format(format_name).options(**options(topics.bootstrap_servers, wanted)).load()


def stream(spark: SparkSession, topics: Topics, format_name: str, given: dict[str, Any]) -> DataFrame:
    wanted = options(topics.bootstrap_servers, {"startingOffsets": "earliest", **given})
    return spark.readStream.format(format_name).options(**wanted).load()


def run(frame: DataFrame, checkpoint: Path) -> Collected:
    collected = Collected()
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(collected)
    writer.trigger(availableNow=True).start().awaitTermination(60)
    return collected


def last_offset(checkpoint: Path) -> str:
    written = (checkpoint / "offsets").glob("[0-9]*")
    return max(written, key=lambda each: int(each.name)).read_text()


def rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("topic", "partition", "offset").collect()


def filled(topics: Topics) -> str:
    """Two partitions with all kinds of records, every compression type, and an aborted transaction."""
    # Retention would delete records with old timestamps.
    topic = topics.create(2, retention_ms="-1")
    for number, compression in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        records: list[dict[str, Any]] = [
            {
                "key": None if n % 3 == 0 else f"key-{n}",
                "value": None if n % 7 == 0 else f"{compression}-{n}" * n,
                "partition": number % 2,
                "timestamp": 1_700_000_000_000 + 1000 * number + n,
                "headers": [("a", b"x" * n), ("b", None), ("ä", b"")] if n % 2 else [],
            }
            for n in range(1, 21)
        ]
        topics.produce(topic, records, compression_type=compression, linger_ms="50")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": topics.bootstrap_servers, "transactional.id": topic}
    )
    producer.init_transactions(30)
    for commits in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic, b"in a transaction", partition=0)
        producer.flush(30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    return topic


def test_both_read_the_same_rows(spark: SparkSession, topics: Topics) -> None:
    topic = filled(topics)
    some = json.dumps({topic: {"0": 7, "1": -2}})
    ends = json.dumps({topic: {"0": 33, "1": -1}})
    times = json.dumps({topic: {"0": 1_700_000_002_005, "1": 9_999_999_999_999}})
    for given in (
        {"subscribe": topic},
        {"subscribe": topic, "includeHeaders": True},
        {"subscribePattern": f"{topic[:-1]}[{topic[-1]}]$"},
        {"assign": json.dumps({topic: [1]})},
        {"subscribe": topic, "startingOffsets": some, "endingOffsets": ends},
        {"subscribe": topic, "startingTimestamp": 1_700_000_001_010, "endingTimestamp": 1_700_000_003_000},
        {
            "subscribe": topic,
            "startingOffsetsByTimestamp": times,
            "startingOffsetsByTimestampStrategy": "latest",
        },
        {"subscribe": topic, "minPartitions": 5},
        {"subscribe": topic, "maxRecordsPerPartition": 9},
    ):
        official, ours = (read(spark, topics, each, given) for each in FORMATS)
        assert ours.dtypes == official.dtypes
        assert rows(ours) == rows(official), given
        if "minPartitions" in given:
            assert ours.rdd.getNumPartitions() == official.rdd.getNumPartitions() == 5
        elif "maxRecordsPerPartition" in given:
            # The official connector ignores it unless start and end are given as offsets.
            assert ours.rdd.getNumPartitions() == 13
    assert len(rows(read(spark, topics, "moldau", {"subscribe": topic}))) == 102


def test_both_reject_the_same_options(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 0, 1, 2, 3)
    for given in (
        {},
        {"subscribe": topic, "assign": json.dumps({topic: [0]})},
        {"subscribe": ","},
        {"assign": "0"},
        {"subscribe": topic, "startingOffsets": "latest"},
        {"subscribe": topic, "endingOffsets": "earliest"},
        {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 0}})},
        {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 0, "1": -1}})},
        {"subscribe": topic, "startingTimestamp": 9_999_999_999_999},
        {"subscribe": topic, "startingTimestamp": "noon"},
        {"subscribe": topic, "minPartitions": 0},
        {"subscribe": topic, "kafka.auto.offset.reset": "earliest"},
        {"subscribe": topic, "kafka.enable.auto.commit": "true"},
        {"subscribe": topic, "kafka.key.deserializer": "x"},
    ):
        for each in FORMATS:
            with pytest.raises(Exception):  # noqa: B017
                read(spark, topics, each, given).collect()


def test_both_streams_have_the_same_batches(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(3)
    for partition, count in enumerate((40, 10, 3)):
        topics.fill(topic, partition, *range(count))
    for number, given in enumerate(({"maxOffsetsPerTrigger": 20}, {"minPartitions": 7}, {})):
        official, ours = (
            run(stream(spark, topics, each, {"subscribe": topic, **given}), tmp_path / f"{each}-{number}")
            for each in FORMATS
        )
        assert list(map(sorted, ours.batches)) == list(map(sorted, official.batches)), given
        assert ours.tasks == official.tasks, given


def test_our_format_resumes_from_a_checkpoint_of_the_official_connector(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """To migrate a pipeline from Spark's connector, change the name of the format and keep the checkpoint."""
    topic = topics.create(2)
    topics.fill(topic, 0, *range(5))
    assert sorted(run(stream(spark, topics, "kafka", {"subscribe": topic}), tmp_path).values) == [*range(5)]
    topics.fill(topic, 1, *range(5, 8))
    assert sorted(run(stream(spark, topics, "moldau", {"subscribe": topic}), tmp_path).values) == [5, 6, 7]
    assert '"ids"' in last_offset(tmp_path)
    # And back again, once the checkpoint contains only offsets.
    topics.fill(topic, 0, 8)
    plain = {"subscribe": topic, "topicIds": "false"}
    assert run(stream(spark, topics, "moldau", plain), tmp_path).values == [8]
    topics.fill(topic, 1, 9)
    assert run(stream(spark, topics, "kafka", {"subscribe": topic}), tmp_path).values == [9]


def test_records_written_by_the_official_connector_are_read(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    batch, streamed = topics.create(2), topics.create(2)
    frame = spark.createDataFrame(
        [(bytes([n]), bytes([n, n]), datetime(2024, 5, 17, 12, 0, n, tzinfo=UTC)) for n in range(30)],
        "key binary, value binary, timestamp timestamp",
    )
    where = options(topics.bootstrap_servers, {"topic": batch})
    frame.drop("timestamp").write.format("kafka").options(**where).save()
    official, ours = (rows(read(spark, topics, each, {"subscribe": batch})) for each in FORMATS)
    assert ours == official
    assert sorted(bytes(row.value) for row in ours) == [bytes([n, n]) for n in range(30)]

    writer = stream(spark, topics, "moldau", {"subscribe": batch}).select("key", "value").writeStream
    where = options(topics.bootstrap_servers, {"topic": streamed, "checkpointLocation": tmp_path})
    writer.format("kafka").options(**where).trigger(availableNow=True).start().awaitTermination(60)
    copied = rows(read(spark, topics, "moldau", {"subscribe": streamed}))
    assert sorted((row.key, row.value) for row in copied) == sorted((row.key, row.value) for row in ours)


def test_kafka_consumer_groups_shows_the_lag_of_a_query(
    spark: SparkSession, topics: Topics, tmp_path: Path, tool: JavaTool
) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(7))
    writer = stream(spark, topics, "moldau", {"subscribe": topic}).writeStream.queryName(f"{topic}-lag")
    writer = writer.option("checkpointLocation", str(tmp_path)).format("noop")
    query = writer.trigger(processingTime="1 second").start()
    try:
        admin = topics.admin
        eventually(lambda: len(admin.list_group_offsets(f"{topic}-lag")) == 1, timeout=40)
    finally:
        query.stop()
    topics.fill(topic, 0, 7, 8)
    said, code = tool(
        GROUPS_TOOL, "--bootstrap-server", topics.bootstrap_servers, "--describe", "--group", f"{topic}-lag"
    )
    assert code == 0
    assert [line.split()[:6] for line in said.splitlines() if topic in line] == [
        [f"{topic}-lag", topic, "0", "7", "9", "2"]
    ]
