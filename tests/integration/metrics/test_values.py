"""Values of metrics after a known load of real clients."""

from __future__ import annotations

import gzip
import uuid

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from moldau.metrics.catalog.table import FAMILIES
from tests.harness.scraping import MeasuredCluster
from tests.harness.waiting import eventually

TRAFFIC = "kafka_server_brokertopicmetrics_"


def produce(measured: MeasuredCluster, topic: str, records: int, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": measured.cluster.bootstrap_servers, **settings})
    for number in range(records):
        producer.produce(topic, b"x" * 100, str(number))
    assert producer.flush(30) == 0


def consume(measured: MeasuredCluster, topic: str, records: int, group: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": measured.cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    received = 0
    while received < records:
        messages = consumer.consume(records, 5)
        assert all(message.error() is None for message in messages)
        received += len(messages)
    consumer.commit(asynchronous=False)
    consumer.close()


def test_records_and_bytes_of_a_topic_are_counted(measured: MeasuredCluster) -> None:
    topic = f"counted-{uuid.uuid4().hex[:8]}"
    produce(measured, topic, 500)
    consume(measured, topic, 500, f"group-{topic}")
    before = measured.value(f"{TRAFFIC}messagesin_total")
    produce(measured, topic, 200)
    assert measured.value(f"{TRAFFIC}messagesin_total", topic=topic) == 700
    assert measured.value(f"{TRAFFIC}messagesin_total") - before == 200
    bytes_in = measured.value(f"{TRAFFIC}bytesin_total", topic=topic)
    assert 70_000 < bytes_in < 90_000
    bytes_out = measured.value(f"{TRAFFIC}bytesout_total", topic=topic)
    assert 50_000 < bytes_out < bytes_in
    assert measured.value(f"{TRAFFIC}failedproducerequests_total", topic=topic) == 0


def test_refused_batches_are_counted(measured: MeasuredCluster) -> None:
    topic = f"refused-{uuid.uuid4().hex[:8]}"
    produce(measured, topic, 1)
    errors: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": measured.cluster.bootstrap_servers, "message.max.bytes": 10_000_000}
    )
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda error, message: errors.append(error))
    producer.flush(30)
    assert [error and error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert measured.value(f"{TRAFFIC}failedproducerequests_total", topic=topic) == 1
    assert measured.value(f"{TRAFFIC}bytesrejected_total", topic=topic) > 2_000_000
    assert (
        measured.value(
            "kafka_network_requestmetrics_errors_total", request="Produce", error="MESSAGE_TOO_LARGE"
        )
        >= 1
    )


def test_requests_are_counted_with_their_durations(measured: MeasuredCluster) -> None:
    name = "kafka_network_requestmetrics_"
    before = measured.value(f"{name}totaltimems_count", request="Produce")
    topic = f"timed-{uuid.uuid4().hex[:8]}"
    for _ in range(10):
        produce(measured, topic, 1)
    families = measured.families()
    samples = {
        (sample.name, sample.labels.get("quantile", "")): sample.value
        for family in (f"{name}totaltimems", f"{name}localtimems", f"{name}remotetimems")
        for sample in families[family].samples
        if sample.labels["request"] == "Produce"
    }
    assert samples[f"{name}totaltimems_count", ""] == before + 10
    total, local, remote = (samples[f"{name}{phase}timems_sum", ""] for phase in ("total", "local", "remote"))
    assert 0 < local <= total
    assert total == pytest.approx(local + remote, abs=0.1)
    assert 0 < samples[f"{name}totaltimems", "0.5"] <= samples[f"{name}totaltimems", "0.999"] < 10_000


def test_waiting_fetches_are_in_the_purgatory(measured: MeasuredCluster) -> None:
    topic = f"waiting-{uuid.uuid4().hex[:8]}"
    produce(measured, topic, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": measured.cluster.bootstrap_servers,
            "group.id": f"group-{topic}",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 500,
        }
    )
    consumer.subscribe([topic])
    while not consumer.consume(1, 5):
        pass
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    eventually(lambda: measured.value(purgatory, delayedOperation="Fetch") == 1, timeout=20)
    consumer.close()
    eventually(lambda: measured.value(purgatory, delayedOperation="Fetch") == 0, timeout=20)


@pytest.mark.parametrize("open_metrics", [False, True])
def test_both_formats_have_all_families(measured: MeasuredCluster, open_metrics: bool) -> None:
    families = measured.families(open_metrics=open_metrics)
    # Clients of other tests may have pushed metrics of their own.
    ours = [name for name in families if not name.startswith("org_apache_kafka_")]
    assert ours == [family.name.removesuffix("_total") for family in FAMILIES]
    assert all(family.documentation and family.type != "unknown" for family in families.values())
    silent = {
        family.name
        for family in FAMILIES
        if family.has_total and not families[family.name.removesuffix("_total")].samples
    }
    assert silent == set()


def test_compressed_scrapes_are_served(measured: MeasuredCluster) -> None:
    answer = measured.get("/metrics", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.body).startswith(b"# HELP ")
