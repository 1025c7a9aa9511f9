"""Series of clients: counters grow by deltas, old clients are forgotten, and room is bounded."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from moldau.metrics.exposition import Scrape
from moldau.metrics.telemetry.otlp import MAX_LABEL_VALUE, Point, decode
from moldau.metrics.telemetry.series import ClientSeries
from tests.harness.otlp import histogram, payload

CLIENT = (("client_id", "c"), ("client_instance_id", "i"))


def values(series: ClientSeries) -> dict[str, list[tuple[dict[str, str], float]]]:
    scrape = Scrape(())
    for _ in series.collect(scrape):
        pass
    text = "".join(scrape.rendered(open_metrics=True))
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


def test_deltas_are_summed_and_gauges_replaced() -> None:
    series = ClientSeries()
    for value in (2.0, 3.0):
        points = [
            Point("org_apache_kafka_producer_sent", (), value, True, True),
            Point("org_apache_kafka_producer_queue", (("topic", 'a"b'),), value, False, False),
            Point("org_apache_kafka_all_total", (), value, True, False),
        ]
        series.add(b"i", CLIENT, points, 0, 10)
    labels = dict(CLIENT)
    assert values(series) == {
        "org_apache_kafka_producer_sent": [(labels, 5.0)],
        "org_apache_kafka_producer_queue": [({"topic": 'a"b', **labels}, 3.0)],
        "org_apache_kafka_all": [(labels, 3.0)],
    }


def test_names_are_kept_apart_from_those_of_the_node() -> None:
    series = ClientSeries()
    series.add(b"i", CLIENT, [Point("kafka_brokers", (("client_id", "forged"),), 9, False, False)], 0, 10)
    assert values(series) == {"org_apache_kafka_kafka_brokers": [(dict(CLIENT), 9.0)]}


def test_a_gauge_with_the_name_of_a_counter_is_left_out() -> None:
    series = ClientSeries()
    points = [Point("x", (), 1, False, False), Point("x", (), 2, True, False)]
    series.add(b"i", CLIENT, points, 0, 10)
    assert values(series) == {"org_apache_kafka_x": [(dict(CLIENT), 2.0)]}


def test_clients_that_stop_pushing_are_forgotten() -> None:
    series = ClientSeries()
    series.add(b"i", CLIENT, [Point("a", (), 1, False, False)], 0, 10)
    series.add(b"j", CLIENT, [Point("b", (), 1, False, False)], 5, 10)
    series.expire(10)
    assert list(values(series)) == ["org_apache_kafka_b"]
    series.expire(15)
    assert (len(series), values(series)) == (0, {})


def test_the_number_of_series_is_bounded() -> None:
    series = ClientSeries(max_series=3)
    points = [Point(f"m{number}", (), 1, False, False) for number in range(5)]
    series.add(b"i", CLIENT, points, 0, 10)
    assert (len(series), series.dropped) == (3, 2)
    series.expire(10)
    series.add(b"j", CLIENT, points, 0, 10)
    assert len(series) == 3


def test_clients_are_forgotten_without_a_scrape() -> None:
    series = ClientSeries()
    series.add(b"i", CLIENT, [Point("a", (), 1, False, False)], 100, 60)
    series.add(b"j", CLIENT, [Point("b", (), 1, False, False)], 159, 60)
    assert len(series) == 2
    series.add(b"j", CLIENT, [Point("b", (), 1, False, False)], 170, 60)
    assert list(values(series)) == ["org_apache_kafka_b"]


def test_series_that_a_client_has_stopped_pushing_are_forgotten() -> None:
    """A client whose labels change, such as the nodes that it is connected to, does not fill the room."""
    series = ClientSeries(max_series=10)
    for second in range(0, 6000, 20):
        points = [Point("a", (("node_id", str(second)),), 1, False, False)]
        series.add(b"i", CLIENT, points, second, 60)
    assert (series.dropped, len(series)) == (0, 3)
    [samples] = values(series).values()
    assert [labels["node_id"] for labels, _ in samples] == ["5940", "5960", "5980"]


def test_the_text_of_all_series_is_bounded() -> None:
    series = ClientSeries(max_characters=10_000)
    points = [Point(f"m{number}", (("l", "x" * 200),), 1, False, False) for number in range(100)]
    series.add(b"i", CLIENT, points, 0, 60)
    assert 20 < len(series) < 50
    assert 9_500 < series.characters <= 10_000
    assert series.dropped == 100 - len(series)
    series.expire(60)
    assert (len(series), series.characters) == (0, 0)


def test_the_name_of_a_client_is_bounded() -> None:
    """A client id has up to 32,767 characters, and is a label of every sample."""
    series = ClientSeries()
    series.add(b"i", (("client_id", "c" * 32_767),), [Point("a", (), 1, False, False)], 0, 60)
    [[(labels, _)]] = values(series).values()
    assert labels["client_id"] == "c" * MAX_LABEL_VALUE


def test_a_client_without_points_takes_no_memory() -> None:
    series = ClientSeries()
    for number in range(100):
        series.add(bytes([number]), CLIENT, [], 0, 1e9)
    assert not series._clients


def test_a_scrape_of_many_series_is_interrupted_often() -> None:
    series = ClientSeries()
    points = [Point(f"m{number}", (), 1, False, False) for number in range(1000)]
    series.add(b"i", CLIENT, points, 0, 60)
    assert sum(1 for _ in series.collect(Scrape(()))) >= 10


def test_deltas_of_a_histogram_are_summed() -> None:
    series = ClientSeries()
    content = payload(histogram("h", [1, 2], [0.5], 4.0, delta=True))
    for _ in range(2):
        series.add(b"i", CLIENT, decode(content), 0, 10)
    found = values(series)
    assert found["org_apache_kafka_h_count"] == [(dict(CLIENT), 6.0)]
    assert found["org_apache_kafka_h_sum"] == [(dict(CLIENT), 8.0)]
    assert {labels["le"]: value for labels, value in found["org_apache_kafka_h_bucket"]} == {
        "0.5": 2.0,
        "+Inf": 6.0,
    }
