"""Both text formats, as Prometheus' own parsers read them, and the choice between them."""

from __future__ import annotations

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from moldau.metrics.exposition import Scrape, wants_open_metrics
from moldau.metrics.family import Family, Kind, counter, gauge, summary

REQUESTS = counter("requests_total", 'Requests with a "quote", a \\ and a\nline.', ("topic",), has_total=True)
SIZE = gauge("size", "Sizes.", ("topic", "partition"))
EMPTY = gauge("empty", "Nothing to count.")
TIME = summary("time_ms", "Times.", ("request",))
FAMILIES = (REQUESTS, SIZE, EMPTY, TIME)
AWKWARD = 'a"b\\c\nd é'


def scraped() -> Scrape:
    scrape = Scrape(FAMILIES)
    scrape.add(REQUESTS, 3)
    scrape.add(REQUESTS, 2, AWKWARD)
    scrape.add(SIZE, math.inf, "t", 0)
    scrape.add_summary(TIME, [(0.5, 1.5), (0.99, 2.0)], 7.5, 4, "Fetch")
    return scrape


@pytest.mark.parametrize("open_metrics", [False, True])
def test_parsers_read_what_was_added(open_metrics: bool) -> None:
    text = "".join(scraped().rendered(open_metrics=open_metrics))
    parse = parse_open_metrics if open_metrics else parse_text
    families = {family.name: family for family in parse(text)}
    assert {name: family.type for name, family in families.items()} == {
        "requests": "counter",
        "size": "gauge",
        "empty": "gauge",
        "time_ms": "summary",
    }
    samples = [
        (each.name, each.labels, each.value) for family in families.values() for each in family.samples
    ]
    assert samples == [
        ("requests_total", {}, 3.0),
        ("requests_total", {"topic": AWKWARD}, 2.0),
        ("size", {"topic": "t", "partition": "0"}, math.inf),
        ("empty", {}, 0.0),
        ("time_ms", {"request": "Fetch", "quantile": "0.5"}, 1.5),
        ("time_ms", {"request": "Fetch", "quantile": "0.99"}, 2.0),
        ("time_ms_sum", {"request": "Fetch"}, 7.5),
        ("time_ms_count", {"request": "Fetch"}, 4.0),
    ]
    assert families["requests"].documentation == REQUESTS.help


def test_a_family_without_samples_has_help_and_type() -> None:
    text = "".join(Scrape((SIZE,)).rendered(open_metrics=False))
    assert text == "# HELP size Sizes.\n# TYPE size gauge\n"


@pytest.mark.parametrize(
    ("accept", "open_metrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", True),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.9", False),
        ("application/openmetrics-text;q=x", False),
    ],
)
def test_accept_chooses_the_format(accept: str, open_metrics: bool) -> None:
    assert wants_open_metrics(accept) is open_metrics


@pytest.mark.parametrize(("name", "kind"), [("a_total", Kind.GAUGE), ("a", Kind.COUNTER)])
def test_only_counters_end_with_total(name: str, kind: Kind) -> None:
    with pytest.raises(ValueError, match="_total"):
        Family(name, kind, "Help.")
