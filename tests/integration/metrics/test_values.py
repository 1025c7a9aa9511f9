"""Values of metrics after a known load of real clients."""

from __future__ import annotations

import gzip
import socket
import time
import uuid

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient as KafkaAdmin

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.client import checked
from moldau.client.admin.topic_types import NewTopic
from moldau.metrics.catalog.table import FAMILIES
from moldau.pipelines.sink.markers import Marker
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.tools import run_tool
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


def test_commits_and_rebalances_of_groups_are_counted(measured: MeasuredCluster) -> None:
    names = "kafka_server_group_coordinator_metrics_"
    before = {name: measured.value(f"{names}{name}_count") for name in ("offset_commit", "offset_deletion")}
    rebalances = measured.value(f"{names}group_completed_rebalance_count")
    topic = f"commits-{uuid.uuid4().hex[:8]}"
    produce(measured, topic, 3)
    consume(measured, topic, 3, f"group-{topic}")
    assert measured.value(f"{names}offset_commit_count") > before["offset_commit"]
    assert measured.value(f"{names}group_completed_rebalance_count") > rebalances
    with AdminClient(measured.cluster.bootstrap_servers) as admin:

        def rate() -> float:
            admin.alter_group_offsets(f"group-{topic}", {TopicPartition(topic, 0): 1})
            return measured.value(f"{names}offset_commit_rate")

        eventually(rate, timeout=30, what="the rate is above 0")
        admin.delete_group_offsets(f"group-{topic}", [TopicPartition(topic, 0)])
    assert measured.value(f"{names}offset_deletion_count") > before["offset_deletion"]


def test_the_age_of_a_lag_grows_until_it_is_consumed(measured: MeasuredCluster) -> None:
    topic = f"aging-{uuid.uuid4().hex[:8]}"
    labels = {"consumergroup": f"group-{topic}", "topic": topic, "partition": "0"}
    produce(measured, topic, 2)
    consume(measured, topic, 2, labels["consumergroup"])
    assert measured.value("moldau_lag_seconds", **labels) == 0
    begin = time.monotonic()
    produce(measured, topic, 3)
    value = eventually(
        lambda: (age := measured.value("moldau_lag_seconds", **labels)) > 1 and age, timeout=20
    )
    assert value <= time.monotonic() - begin + 0.1
    consume(measured, topic, 3, labels["consumergroup"])
    assert measured.value("moldau_lag_seconds", **labels) == 0


def test_a_flush_after_every_record_is_measured(measured: MeasuredCluster) -> None:
    name = "kafka_log_logflushstats_logflushrateandtimems"
    topic = f"flushed-{uuid.uuid4().hex[:8]}"
    with AdminClient(measured.cluster.bootstrap_servers) as admin:
        assert admin.create_topics([NewTopic(topic, 1, 1, configs={"flush.messages": "1"})]) == {topic: None}
    before = measured.value(f"{name}_count")
    for _ in range(3):
        produce(measured, topic, 1)
    assert measured.value(f"{name}_count") >= before + 3
    assert measured.value(f"{name}_sum") > 0 and measured.value(name, quantile="0.99") > 0


def test_sizes_of_requests_are_measured(measured: MeasuredCluster) -> None:
    name = "kafka_network_requestmetrics_requestbytes"
    topic = f"sizes-{uuid.uuid4().hex[:8]}"
    before = measured.value(f"{name}_sum", request="Produce")
    produce(measured, topic, 1000)
    assert 100_000 < measured.value(f"{name}_sum", request="Produce") - before < 150_000
    assert measured.value(name, request="Produce", quantile="0.999") > 100
    count = measured.value(f"{name}_count", request="Produce")
    assert count == measured.value("kafka_network_requestmetrics_totaltimems_count", request="Produce")


def test_one_processor_and_one_release(measured: MeasuredCluster) -> None:
    idle = measured.value("kafka_network_processor_idle_percent", networkProcessor="0")
    assert 0 <= idle <= 1
    assert measured.value("kafka_server_app_info", id="1", version="4.3.0") == 1
    assert measured.value("kafka_server_app_info_starttimems", id="1") > 1.6e12
    assert 0 <= measured.value("kafka_server_raft_metrics_poll_idle_ratio_avg") <= 1


def test_records_that_a_compacted_topic_refuses_are_counted(measured: MeasuredCluster) -> None:
    topic, name = f"compacted-{uuid.uuid4().hex[:8]}", f"{TRAFFIC}nokeycompactedtopicrecords_total"
    with AdminClient(measured.cluster.bootstrap_servers) as admin:
        checked(admin.create_topics([NewTopic(topic, 1, 1, configs={"cleanup.policy": "compact"})]))
    before, refused = measured.value(name), list[KafkaError | None]()
    producer = Producer({"bootstrap.servers": measured.cluster.bootstrap_servers, "linger.ms": 100})
    for _ in range(3):
        producer.produce(topic, b"x", on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(30) == 0
    assert len(refused) == 3 and all(refused)
    assert measured.value(name) == before + 3


def test_a_share_group_has_its_lag(measured: MeasuredCluster) -> None:
    """Of the records that its members have not completed, by the share coordinator."""
    bootstrap = measured.cluster.bootstrap_servers
    topic, group = f"shared-{uuid.uuid4().hex[:8]}", f"share-{uuid.uuid4().hex[:8]}"
    produce(measured, topic, 5)
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    named = ("--entity-type", "groups", "--entity-name", group)
    altered = run_tool("kafka-configs", "--bootstrap-server", bootstrap, "--alter", *named, *earliest)
    assert altered.code == 0
    reading = ("--topic", topic, "--group", group, "--max-messages", "5", "--timeout-ms", "20000")
    read = run_tool("kafka-console-share-consumer", "--bootstrap-server", bootstrap, *reading)
    assert read.code == 0 and len(read.out.splitlines()) == 5
    labels = {"consumergroup": group, "topic": topic}
    eventually(lambda: lags(measured, **labels) == [0], what="the group has read all")
    produce(measured, topic, 7)
    assert lags(measured, **labels) == [7]
    assert measured.sums("kafka_consumergroup_lag_sum", **labels) == 7
    assert measured.value("kafka_consumergroup_members", consumergroup=group) == 0


def test_the_number_of_a_batch_that_a_pipeline_has_written_is_no_position(measured: MeasuredCluster) -> None:
    topic, reader, task = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("sink", "reader", "task"))
    produce(measured, topic, 10)
    place = TopicPartition(topic, 0)
    with AdminClient(measured.cluster.bootstrap_servers) as admin:
        checked(admin.alter_group_offsets(task, {place: Marker(7, "run", "write").stored(2)}))
        checked(admin.alter_group_offsets(reader, {place: 4}))
    assert lags(measured, consumergroup=reader, topic=topic) == [6]
    assert lags(measured, consumergroup=task) == []


def lags(measured: MeasuredCluster, **labels: str) -> list[float]:
    samples = measured.families()["kafka_consumergroup_lag"].samples
    return [each.value for each in samples if labels.items() <= each.labels.items()]


def test_the_cleaner_reports_when_it_looked_for_logs(measured: MeasuredCluster) -> None:
    since_start_ms = 1000 * (time.time() - measured.value("process_start_time_seconds"))
    assert 0 <= measured.value("kafka_log_logcleanermanager_time_since_last_run_ms") <= since_start_ms + 1000
    assert 0 <= measured.value("kafka_log_logcleanermanager_max_dirty_percent") <= 100


def test_a_throttled_client_has_figures(measured: MeasuredCluster) -> None:
    client_id, topic = f"throttled-{uuid.uuid4().hex[:8]}", f"quota-{uuid.uuid4().hex[:8]}"
    with AdminClient(measured.cluster.bootstrap_servers) as admin:
        admin.alter_client_quotas((("client-id", client_id),), {"producer_byte_rate": 1000.0})
    produce(measured, topic, 100, **{"client.id": client_id})
    labels = {"user": "", "client_id": client_id}
    assert measured.value("kafka_server_produce_byte_rate", **labels) > 1000
    assert measured.value("kafka_server_produce_throttle_time", **labels) > 0
    # The names of the JMX exporter's example rules.
    labels = {"resource": "Produce", "user": "", "clientId": client_id}
    assert measured.value("kafka_server_quota_byte_rate", **labels) > 1000
    assert measured.value("kafka_server_quota_throttle_time", **labels) > 0
    assert measured.value("moldau_quota_throttled_clients", quota="producer_byte_rate") >= 1


def test_logins_and_handshakes_are_counted_by_listener() -> None:
    with measured_cluster(security="SCRAM-SHA-512") as secured:
        client = secured.cluster.librdkafka_config
        good, bad = client, {**client, "sasl.password": "wrong", "log_level": 0}
        admin = KafkaAdmin(good)
        admin.list_topics(timeout=10)
        names = "kafka_server_socket_server_metrics_"
        [listener] = {
            sample.labels["listener"]
            for sample in secured.families()[f"{names}successful_authentication"].samples
            if sample.value > 0
        }
        labels = {"listener": listener, "networkProcessor": "0"}
        assert secured.value(f"{names}failed_authentication_total", **labels) == 0
        with pytest.raises(KafkaException):
            KafkaAdmin(bad).list_topics(timeout=2)
        eventually(lambda: secured.value(f"{names}failed_authentication_total", **labels) >= 1)
        assert secured.value("moldau_tls_handshakes_total", listener=listener, result="successful") >= 2
        encrypted = secured.families()[f"{names}connections_tls_info"].samples
        assert sum(each.value for each in encrypted if each.labels["listener"] == listener) >= 1
        assert {each.labels["protocol"] for each in encrypted} <= {"TLSv1.2", "TLSv1.3"}
        assert all(each.labels["cipher"] for each in encrypted)
        failed = secured.value(f"{names}failed_authentication_total", **labels)
        with socket.create_connection(("127.0.0.1", secured.cluster.node(1).port)) as plain:
            plain.sendall(b"not TLS")
        eventually(
            lambda: secured.value("moldau_tls_handshakes_total", listener=listener, result="failed") >= 1
        )
        assert secured.value(f"{names}failed_authentication_total", **labels) > failed
