"""The Prometheus metrics of pipelines; docs/PIPELINES.md documents them all."""

from __future__ import annotations

import re
from typing import Any

from moldau.pipelines.runtime.host import Hosted
from moldau.pipelines.runtime.metrics import serve_metrics
from moldau.pipelines.runtime.progress import Summary
from moldau.pipelines.runtime.python_pipeline import Context, Pipeline
from moldau.pipelines.runtime.restarts import Policy
from moldau.pipelines.runtime.state import Status
from tests.docs.markdown import ROOT
from tests.harness.prometheus import figures, scrape


def served() -> str:
    """Serve the metrics of a pipeline with values of all kinds; return the address."""

    def function() -> Any:
        return None

    status = Status(
        'or"ders', "running", restarts=2, dead_letters=5, checks={"unreadable": 1, "check few": 4}
    )
    hosted = Hosted(Pipeline("orders", function), status, Context("", ""), Policy())
    hosted.summaries["copy"] = Summary(
        "copy",
        batch=4,
        batches=5,
        rows=1000,
        rows_per_second=250.0,
        batch_ms=400,
        lag={"in": {"0": 7, "1": 0}},
        state_rows=3,
        watermark="1970-01-01T00:01:00.000Z",
    )
    return f"http://localhost:{serve_metrics([hosted], 0)}/metrics"


def test_all_metrics_are_exported() -> None:
    values = figures(served())
    query = ('or"ders', "copy")
    assert values[("moldau_pipeline_state", 'or"ders', "running")] == 1
    assert values[("moldau_pipeline_state", 'or"ders', "failed")] == 0
    assert values[("moldau_pipeline_restarts_total", 'or"ders')] == 2
    assert values[("moldau_pipeline_dead_letters_total", 'or"ders')] == 5
    assert values[("moldau_pipeline_check_failures_total", "few", 'or"ders')] == 4
    assert values[("moldau_pipeline_input_rows_total", *query)] == 1000
    assert values[("moldau_pipeline_batches_total", *query)] == 5
    assert values[("moldau_pipeline_lag_records", "0", *query, "in")] == 7
    assert values[("moldau_pipeline_rows_per_second", *query)] == 250
    assert values[("moldau_pipeline_batch_duration_seconds", *query)] == 0.4
    assert values[("moldau_pipeline_state_rows", *query)] == 3
    assert values[("moldau_pipeline_watermark_timestamp_seconds", *query)] == 60


def test_every_metric_has_help_text_and_is_documented() -> None:
    found = scrape(served())
    assert all(family.documentation for family in found)
    page = (ROOT / "docs" / "PIPELINES.md").read_text()
    on_the_page = set(re.findall(r"`(moldau_pipeline_\w+)`", page))
    assert on_the_page == {family.name + ("_total" if family.type == "counter" else "") for family in found}
