"""The tables of `moldau lag`, from scenarios with virtual time."""

from __future__ import annotations

import io

from rich.console import Console

from moldau.cli.moldau.lag.table import render
from moldau.lag.evaluation.verdicts import LagSnapshot
from tests.scenarios.lag_world import LagWorld


def printed(snapshot: LagSnapshot, *, partitions: bool = False) -> list[list[str]]:
    """Return the words of all lines but the rule below the heading."""
    out = io.StringIO()
    Console(file=out, width=500).print(render(snapshot, partitions=partitions))
    return [line.split() for line in out.getvalue().splitlines() if "─" not in line]


def world(*commands: str) -> LagWorld:
    lag_world = LagWorld()
    for command in ("window 60 10", "topic orders 2", "member m1 orders-0 orders-1", *commands):
        lag_world.run(command)
    return lag_world


def test_the_status_is_the_observed_part_of_the_window_and_then_the_verdict() -> None:
    lag_world = world("produce orders-0 50", "rounds 1 orders-0 +10 -1")
    seen = []
    for _ in range(3):
        seen.append(printed(lag_world.evaluator.snapshot())[1])
        lag_world.run("rounds 3 orders-0 +10 -1")
    assert [row[-1] for row in seen] == ["-", "50%", "WARN"]
    assert seen[-1][:6] == ["billing", "classic", "Stable", "1", "2", "113"]


def test_partitions_with_their_members_and_the_reason() -> None:
    lag_world = world("rounds 7 orders-0 +10 -10", "rounds 8 orders-0 +10")
    heading, first, second, *rest = printed(lag_world.evaluator.snapshot(), partitions=True)
    assert heading[-3:] == ["STATUS", "CLIENT-ID", "HOST"]
    assert first == ["billing", "orders", "0", "70", "150", "80", "79.0", "STALL", "c-m1", "10.0.0.1"]
    assert second == ["billing", "orders", "1", "-", "0", "-", "-", "-", "c-m1", "10.0.0.1"]
    assert " ".join(rest[0]).startswith("STALL billing: orders-0: the member m1 (client id c-m1")


def test_errors_are_below_the_table() -> None:
    lag_world = world("denied", "rounds 1")
    snapshot = lag_world.evaluator.snapshot()
    assert " ".join(printed(snapshot)[-1]).startswith("billing: The client is not authorized")
    failed = LagSnapshot(snapshot.time_ms, groups=snapshot.groups, error="no broker answers")
    assert " ".join(printed(failed)[-1]).endswith("no broker answers")
