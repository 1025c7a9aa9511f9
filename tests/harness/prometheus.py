"""Metrics as Prometheus reads them."""

from __future__ import annotations

import urllib.request

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


def scrape(url: str) -> list[Metric]:
    """Return the metrics at an address, in Prometheus' text format."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return list(text_string_to_metric_families(answer.read().decode()))


def figures(url: str) -> dict[tuple[str, ...], float]:
    """Return every value by its name and label values (in the order of the label names)."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in scrape(url)
        for sample in family.samples
    }
