"""Scrapes in both formats, parsed by Prometheus' own client."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from moldau.lag.evaluation.rules import Status
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag
from moldau.lag.serving.burrow import group_status
from moldau.lag.serving.metrics import FAMILIES, render
from moldau.metrics.catalog.table import FAMILIES as NODE_FAMILIES
from moldau.metrics.end_offsets import Age
from tests.harness.prometheus_server import needs_prometheus, promtool

NAME = 'a "quoted"\\name'


def partition(index: int, **changes: object) -> PartitionLag:
    values: dict[str, object] = {
        "topic": "orders",
        "partition": index,
        "status": Status.STALL,
        "judged": True,
        "complete": 1.0,
        "committed": 10,
        "end_offset": 15,
        "start_offset": 0,
        "lag": 5,
        "age": Age(2500, True),
        "first": None,
        "last": None,
    }
    return PartitionLag(**(values | changes))  # type: ignore[arg-type]


SNAPSHOT = LagSnapshot(
    1_700_000_000_000,
    "id",
    {
        NAME: GroupLag(
            NAME,
            "classic",
            "Stable",
            2,
            Status.STALL,
            0.5,
            (
                partition(0),
                partition(1, committed=None, lag=None, age=None, judged=False),
                partition(2, complete=0.5, judged=False),
            ),
            None,
        )
    },
    {"orders": {0: 15, 1: 3, 2: 15}},
)


def samples(text: str, *, open_metrics: bool) -> dict[tuple[str, ...], float]:
    families = parse_open_metrics(text) if open_metrics else parse_text(text)
    return {
        (each.name, *(value for _, value in sorted(each.labels.items()))): each.value
        for family in families
        for each in family.samples
    }


def test_both_formats_have_the_same_samples() -> None:
    kind, text = render("c", SNAPSHOT, None, "")
    open_kind, open_text = render("c", SNAPSHOT, None, "application/openmetrics-text;version=1.0.0")
    assert kind.startswith(b"text/plain") and open_kind.startswith(b"application/openmetrics-text")
    plain, opened = (
        samples(text.decode(), open_metrics=False),
        samples(open_text.decode(), open_metrics=True),
    )
    assert plain.pop(("burrow_kafka_consumer_lag_total", "c", NAME)) == 10
    assert plain == opened
    assert plain["kafka_consumergroup_lag", NAME, "0", "orders"] == 5
    assert plain["kafka_consumergroup_lag_sum", NAME, "orders"] == 10
    assert plain["moldau_lag_seconds", NAME, "0", "orders"] == 2.5
    assert plain["kafka_consumer_lag_millis", NAME, "0", "orders"] == 2500
    assert plain["moldau_lag_round_timestamp_seconds",] == 1_700_000_000


def test_partitions_without_a_commit_or_a_verdict_have_no_samples() -> None:
    found = samples(render("c", SNAPSHOT, None, "")[1].decode(), open_metrics=False)
    assert ("kafka_consumergroup_lag", NAME, "1", "orders") not in found
    assert ("kafka_consumergroup_lag", NAME, "2", "orders") in found
    assert ("moldau_lag_status", NAME, "2", "orders") not in found
    assert ("burrow_kafka_topic_partition_status", "c", NAME, "2", "orders") not in found


def test_a_sum_is_complete_or_missing() -> None:
    """A sum of the known lags would look like a group that has caught up."""
    partitions = (
        partition(0),
        partition(1, end_offset=None, lag=None, age=None, judged=False),
        partition(0, topic="clicks"),
        # A partition that does not exist has no lag to wait for.
        partition(9, topic="clicks", end_offset=None, lag=None, age=None, judged=False, exists=False),
        partition(0, topic="unread"),
    )
    unread = frozenset({"unread"})
    group = GroupLag("g", "classic", "Stable", 1, Status.OK, 1.0, partitions, None, unread=unread)
    found = samples(render("c", LagSnapshot(groups={"g": group}), None, "")[1].decode(), open_metrics=False)
    assert {key: value for key, value in found.items() if key[0].endswith("_sum")} == {
        ("kafka_consumergroup_lag_sum", "g", "clicks"): 5,
        ("kafka_consumergroup_current_offset_sum", "g", "orders"): 20,
        ("kafka_consumergroup_current_offset_sum", "g", "clicks"): 20,
    }
    assert ("kafka_consumergroup_lag", "g", "1", "orders") not in found
    assert found["kafka_consumergroup_current_offset", "g", "1", "orders"] == 10
    assert ("burrow_kafka_consumer_lag_total", "c", "g") not in found
    assert group_status("c", "g", group, all_partitions=True)["totallag"] is None


def test_names_that_nodes_serve_too_are_declared_once() -> None:
    served = {family.name: family for family in NODE_FAMILIES}
    shared = [family for family in FAMILIES if family.name.startswith("kafka_")]
    assert len(shared) == 7
    assert all(family is served[family.name] for family in shared)


def test_every_family_is_declared_even_without_groups() -> None:
    text = render("c", LagSnapshot(error="unreachable"), None, "")[1].decode()
    for family in FAMILIES:
        assert f"# TYPE {family.name} " in text and f"# HELP {family.name} " in text
    assert samples(text, open_metrics=False)["moldau_lag_up",] == 0


@needs_prometheus
def test_promtool_objects_only_to_names_of_others() -> None:
    text = render("c", SNAPSHOT, None, "")[1]
    done = promtool("check", "metrics", given=text)
    objected = {line.split()[0] for line in (done.stdout + done.stderr).decode().splitlines()}
    assert objected == {
        "burrow_kafka_consumer_lag_total",
        "kafka_consumergroup_current_offset_sum",
        "kafka_consumergroup_lag_sum",
    }
