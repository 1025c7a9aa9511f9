"""Latency statistics of a producer."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.perf.stats import LatencyStats


def test_steady_state_is_summarised_apart_from_warmup(capsys: pytest.CaptureFixture[str]) -> None:
    stats = LatencyStats(100, 60_000, warmup=50)
    lines = [stats.record(float(number), 10) for number in range(1, 101)]
    assert [line for line in lines if line] == ["In steady state."]
    stats.print_total()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("100 records sent, ")
    assert first.endswith(
        "50.50 ms avg latency, 100.00 ms max latency, 51 ms 50th, 96 ms 95th, 100 ms 99th, 100 ms 99.9th."
    )
    assert second.startswith("50 steady state records sent, ")
