"""The options of the source: defaults, valid and invalid values, and their error messages."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.pipelines.options import InvalidOption
from moldau.pipelines.source.options import SourceOptions, read_options
from moldau.pipelines.source.positions import Position
from moldau.pipelines.source.subscription import Subscription

WHERE = {"kafka.bootstrap.servers": "localhost:9092"}
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def read(stream: bool = False, **given: str) -> SourceOptions:
    return read_options({**WHERE, "subscribe": "a", **given}, stream=stream)


def test_defaults_of_batch_and_stream() -> None:
    batch, stream = read(), read(stream=True)
    assert (batch.start.kind, batch.end.kind) == ("earliest", "latest")
    assert stream.start.kind == "latest"
    assert batch.read_committed
    assert batch.fail_on_data_loss
    assert not batch.include_headers
    assert batch.group_id is None
    assert batch.settings.bootstrap[0] == ("localhost", 9092)


def test_names_are_case_insensitive() -> None:
    given = {
        "Kafka.Bootstrap.Servers": "localhost:9092",
        "SUBSCRIBE": "a, b,",
        "startingOffsets": "Earliest",
        "maxOffsetsPerTrigger": "10",
        "minOffsetsPerTrigger": "5",
        "maxTriggerDelay": "2m",
        "minPartitions": "4",
        "maxRecordsPerPartition": "100",
        "includeHeaders": "true",
        "failOnDataLoss": "FALSE",
        "groupId": "billing",
        "groupIdPrefix": "spark",
        "kafka.isolation.level": "read_uncommitted",
        "fetchOffset.numRetries": "7",
        "fetchOffset.retryIntervalMs": "20",
        "kafka.request.timeout.ms": "5000",
    }
    options = read_options(given, stream=True)
    assert options.subscription == Subscription(topics=frozenset({"a", "b"}))
    assert options.start.kind == "earliest"
    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (10, 5)
    assert options.max_trigger_delay_ms == 120_000
    assert (options.min_partitions, options.max_records_per_partition) == (4, 100)
    assert options.include_headers
    assert not options.fail_on_data_loss
    assert not options.read_committed
    assert (options.group_id, options.group_id_prefix) == ("billing", "spark")
    assert (options.attempts, options.attempt_interval_ms) == (7, 20)
    assert options.settings.request_timeout_ms == 5000


def test_kafka_group_id_names_the_group() -> None:
    assert read(**{"kafka.group.id": "g"}).group_id == "g"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Position("earliest")),
        ({"startingOffsets": '{"a":{"0":23,"1":-2}}'}, Position("offsets", {A0: 23, A1: -2})),
        ({"startingTimestamp": "1000"}, Position("timestamp", timestamp=1000)),
        (
            {
                "startingOffsetsByTimestamp": '{"a":{"0":1,"1":2}}',
                "startingOffsetsByTimestampStrategy": "latest",
            },
            Position("timestamps", {A0: 1, A1: 2}, -1, latest_if_none=True),
        ),
        # A timestamp for all partitions overrides timestamps by partition, and these override offsets.
        (
            {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":1}}'},
            Position("timestamps", {A0: 1}),
        ),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestamp": '{"a":{"0":1}}'},
            Position("timestamp", timestamp=5),
        ),
    ],
)
def test_starting_positions_and_their_precedence(given: dict[str, str], expected: Position) -> None:
    assert read(**given).start == expected


def test_subscribe_subscribe_pattern_and_assign() -> None:
    pattern = read_options({**WHERE, "subscribePattern": "^ord"}, stream=False).subscription
    assert pattern.names is None
    assert pattern.matches_topic("orders")
    assert not pattern.matches_topic("words")
    assert not pattern.matches_topic("ord-internal", internal=True)
    assigned = read_options({**WHERE, "assign": '{"a":[0],"b":[2]}'}, stream=False).subscription
    assert assigned.names == ["a", "b"]
    assert assigned.matches(A0)
    assert not assigned.matches(A1)
    assert str(assigned) == "a-0, b-2"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": " , "}, "No topics to subscribe to"),
        ({"assign": '{"a":[0]}'}, "Only one of the options subscribe, subscribePattern, assign"),
        ({"startingOffset": "earliest"}, "Did you mean 'startingOffsets'?"),
        ({"maxOffsetPerTrigger": "1"}, "Did you mean 'maxOffsetsPerTrigger'?"),
        ({"startingOffsets": "first"}, 'must be "earliest", "latest" or {'),
        ({"startingOffsets": '{"a":{"0":"x"}}'}, "'startingOffsets' must be"),
        ({"startingOffsets": '{"a":[1]}'}, "'startingOffsets' must be"),
        ({"startingOffsets": "latest"}, "cannot be latest for a batch"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "cannot be latest for a-0"),
        ({"endingOffsets": "earliest"}, "cannot be earliest for a batch"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "cannot be earliest for a-0"),
        (
            {"startingOffsets": '{"a":{"0":5}}', "endingOffsets": '{"a":{"0":3}}'},
            "starting offset 5 of a-0 is greater than its ending offset 3",
        ),
        (
            {"startingOffsets": '{"a":{"0":5}}', "endingOffsets": '{"a":{"1":9}}'},
            "must name the same partitions: starting a-0, ending a-1",
        ),
        ({"startingTimestamp": "noon"}, "timestamp in milliseconds since 1970"),
        # ListOffsets would interpret it as MAX_TIMESTAMP.
        ({"startingTimestamp": "-3"}, "timestamp in milliseconds since 1970"),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "'startingOffsets' must be"),
        ({"kafkaConsumer.pollTimeoutMs": "soon"}, "must be a positive number"),
        ({"topicIds": "no"}, "must be true or false"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "must be error or latest"),
        ({"minPartitions": "0"}, "'minPartitions' must be a positive number"),
        ({"maxRecordsPerPartition": "-3"}, "'maxRecordsPerPartition' must be a positive number"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "is higher than maxOffsetsPerTrigger (8)",
        ),
        ({"maxTriggerDelay": "soon"}, "such as 15m"),
        ({"includeHeaders": "yes"}, "must be true or false"),
        ({"kafka.isolation.level": "snapshot"}, "read_committed or read_uncommitted"),
        ({"kafka.auto.offset.reset": "earliest"}, "'startingOffsets' sets where"),
        ({"kafka.key.deserializer": "x"}, "are binary columns"),
        ({"kafka.value.deserializer": "x"}, "are binary columns"),
        ({"kafka.enable.auto.commit": "true"}, "in its checkpoint"),
        ({"kafka.interceptor.classes": "x"}, "interceptors"),
        ({"kafka.bootstrap.servers": ""}, "is required: host:port"),
    ],
)
def test_invalid_values_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        read(**given)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "One of the options subscribe, subscribePattern, assign must be set"),
        ({"subscribePattern": "  "}, "The pattern is empty"),
        ({"subscribePattern": "a("}, "is not a valid pattern"),
        ({"assign": "a"}, 'for example {"topicA":[0,1]'),
        ({"assign": '{"a":[-1]}'}, "for example"),
        ({"assign": "{}"}, "No partitions to read"),
    ],
)
def test_invalid_subscriptions_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        read_options({**WHERE, **given}, stream=False)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_ending_options_are_refused_for_streams(name: str) -> None:
    with pytest.raises(InvalidOption, match="a stream has no end"):
        read(stream=True, **{name: "latest"})


def test_unknown_options_are_ignored() -> None:
    assert read(path="/tmp/x", mergeSchema="true").subscription.topics == {"a"}


def test_limits_per_trigger_are_ignored_for_batches(caplog: pytest.LogCaptureFixture) -> None:
    read(maxOffsetsPerTrigger="5", maxTriggerDelay="1m")
    assert [record.args for record in caplog.records] == [("maxOffsetsPerTrigger",), ("maxTriggerDelay",)]
    caplog.clear()
    read(stream=True, maxOffsetsPerTrigger="5")
    assert caplog.records == []
