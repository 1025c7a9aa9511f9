"""Write docs/METRICS.md: every metric family of a node, from the table that defines them.

`tests/docs/test_metrics.py` checks that the page is current.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moldau.metrics.catalog.table import SECTIONS
from moldau.metrics.family import Family

PAGE = Path(__file__).parents[1] / "docs" / "METRICS.md"
_INTRODUCTION = """\
# Metrics

Every node serves its metrics at `http://HOST:PORT/metrics` if `metrics.port` is set (`moldau dev
--metrics-port 9308`). [OPERATIONS.md](OPERATIONS.md) says what to watch. This page is generated:
`python -m tools.metrics`.

- Formats: Prometheus' text format, and OpenMetrics 1.0 if the `Accept` header prefers it; gzip if accepted.
- Names are those that existing dashboards and alerts expect: of the JMX exporter's example rules for Kafka
  (`kafka_server_*`, `kafka_network_*`, …), of kafka_exporter (`kafka_consumergroup_*`,
  `kafka_topic_partition_*`), and of Prometheus' client libraries (`process_*`). Ours begin with `moldau_`.
- *Reported by* says which node has the value. What belongs to a partition, a group or the cluster is
  reported by one node, its leader, its coordinator or the active controller, so that `sum()` over all nodes
  is the cluster.
- A node with the broker role serves every family with HELP and TYPE; a node that is only a controller serves
  those of *every node* and of the *active controller*. A family without labels is 0 while there is nothing to
  count; only `kafka_brokers` has no sample on nodes other than the active controller.
- A family with the label `topic` that is marked *and total* also has a sample without it, the sum over all
  topics.
- `metrics.max.topics` (1000) limits the topics with samples of their own to those with the most traffic,
  `metrics.max.partitions` (10000) limits partitions to those of the topics with the most traffic, and the
  partitions of groups. `moldau_metrics_omitted` counts the rest.
- Metrics that clients push (KIP-714) are not in these tables: their names begin with `org_apache_kafka_`, and
  they have the labels `client_id` and `client_instance_id`.
- A summary has the quantiles 0.5, 0.75, 0.95, 0.98, 0.99 and 0.999 of the last five minutes, exact to about
  6 %, and `_sum` and `_count` since the start.
"""


def page() -> str:
    return "\n".join([_INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for title, families in SECTIONS:
        yield f"## {title}\n"
        yield "| name | type | labels | reported by | meaning |"
        yield "|---|---|---|---|---|"
        yield from map(_row, families)
        yield ""


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    if family.labels and family.has_total:
        labels += " *and total*"
    return f"| `{family.name}` | {family.kind.value} | {labels} | {family.reported_by} | {family.help} |"


if __name__ == "__main__":
    PAGE.write_text(page())
