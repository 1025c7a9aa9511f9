"""Prometheus metrics of the pipelines of a driver, collected at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moldau.pipelines.runtime.host import Hosted
from moldau.pipelines.runtime.progress import Summary, watermark_seconds

STATES = ("starting", "running", "waiting", "stopped", "finished", "failed")
_QUERY = ("pipeline", "query")


class PipelineCollector(Collector):
    def __init__(self, hosted: Sequence[Hosted]) -> None:
        self._hosted = hosted

    def collect(self) -> Iterable[Metric]:
        yield from self._of_pipelines()
        yield from self._of_queries()

    def _of_pipelines(self) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "moldau_pipeline_state",
            "1 for the current state of the pipeline, 0 for the others.",
            labels=("pipeline", "state"),
        )
        restarts = CounterMetricFamily(
            "moldau_pipeline_restarts", "Restarts after a failure.", labels=("pipeline",)
        )
        letters = CounterMetricFamily(
            "moldau_pipeline_dead_letters", "Records sent to the dead-letter topic.", labels=("pipeline",)
        )
        failures = CounterMetricFamily(
            "moldau_pipeline_check_failures", "Rows that failed a check.", labels=("pipeline", "check")
        )
        for each in self._hosted:
            status = each.status
            for name in STATES:
                state.add_metric((status.name, name), float(status.state == name))
            restarts.add_metric((status.name,), status.restarts)
            letters.add_metric((status.name,), status.dead_letters)
            for check, count in status.checks.items():
                failures.add_metric((status.name, check.removeprefix("check ")), count)
        yield from (state, restarts, letters, failures)

    def _of_queries(self) -> Iterator[Metric]:
        rows = CounterMetricFamily("moldau_pipeline_input_rows", "Rows read.", labels=_QUERY)
        batches = CounterMetricFamily("moldau_pipeline_batches", "Completed batches.", labels=_QUERY)
        lag = GaugeMetricFamily(
            "moldau_pipeline_lag_records", "Records not yet read.", labels=(*_QUERY, "topic", "partition")
        )
        gauges = {
            name: GaugeMetricFamily(f"moldau_pipeline_{name}", text, labels=_QUERY)
            for name, text in (
                ("rows_per_second", "Rows of the last batch divided by its duration."),
                ("batch_duration_seconds", "Duration of the last batch."),
                ("state_rows", "Rows in the state store."),
                ("watermark_timestamp_seconds", "The event time before which rows are late."),
            )
        }
        for hosted in self._hosted:
            for summary in list(hosted.summaries.values()):
                labels = (hosted.status.name, summary.query)
                rows.add_metric(labels, summary.rows)
                batches.add_metric(labels, summary.batches)
                for topic, partitions in summary.lag.items():
                    for partition, number in partitions.items():
                        lag.add_metric((*labels, topic, partition), number)
                for name, value in _gauges(summary).items():
                    gauges[name].add_metric(labels, value)
        yield from (rows, batches, lag, *gauges.values())


def _gauges(summary: Summary) -> dict[str, float]:
    values = {
        "rows_per_second": summary.rows_per_second,
        "batch_duration_seconds": summary.batch_ms / 1000,
        "state_rows": float(summary.state_rows),
    }
    if summary.watermark is not None:
        values["watermark_timestamp_seconds"] = watermark_seconds(summary.watermark)
    return values


def serve_metrics(hosted: Sequence[Hosted], port: int) -> int:
    """Serve the metrics on this port (0: any free port); return the port."""
    registry = CollectorRegistry()
    registry.register(PipelineCollector(hosted))
    server, _ = start_http_server(port, registry=registry)
    return int(server.server_port)
