"""Series of clients: counters grow by deltas, old clients are forgotten, and room is bounded."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from moldau.metrics.exposition import Scrape
from moldau.metrics.telemetry.otlp import Point
from moldau.metrics.telemetry.series import ClientSeries

CLIENT = (("client_id", "c"), ("client_instance_id", "i"))


def values(series: ClientSeries) -> dict[str, list[tuple[dict[str, str], float]]]:
    scrape = Scrape(())
    series.collect(scrape)
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
