"""`moldau mirror status`, `failover` and `failback`, with dry runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.moldau.mirror.command import main
from moldau.client.admin.client import checked
from moldau.client.admin.topic_types import NewTopic
from tests.harness.mirror import MirrorProcess, mm2_properties, produce, read_all
from tests.harness.waiting import eventually
from tests.integration.mirror.conftest import Pair
from tests.integration.mirror.test_groups import commit, committed


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) in (0, 2)
    return json.loads(capsys.readouterr().out)


def moves_of(plan: Any, group: str) -> dict[str, tuple[str, int | None]]:
    return {
        each["partition"]: (each["action"], each["offset"])
        for each in plan["moves"]
        if each["group"] == group
    }


@pytest.fixture(scope="module")
def ready(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a mirror that copied 100 records, whose source offsets begin at 20, and was stopped."""
    settings = {"x->y.topics": "moved", "heartbeats.replication.enabled": "true"}
    properties = mm2_properties(pair.a, pair.b, settings, source="x", target="y")
    checked(pair.admin_a.create_topics([NewTopic("moved", 1)]))
    produce(pair.a, "moved", [str(n) for n in range(120)])
    checked(pair.admin_a.delete_records({TopicPartition("moved", 0): 20}))
    commit(pair.admin_a, "early", "moved", 40)
    with MirrorProcess(tmp_path_factory.mktemp("failover"), properties) as mirror:
        eventually(lambda: len(read_all(pair.b, "x.moved")) == 100, what=mirror.log[-2000:])
        eventually(lambda: any(b"early" in each.key() for each in read_all(pair.b, "x.checkpoints.internal")))
    return mirror.file


def test_status_names_lag_in_records_and_seconds(
    pair: Pair, ready: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (status,) = run(capsys, "status", str(ready))
    (moved,) = [each for each in status["partitions"] if each["topic"] == "moved"]
    assert moved["state"] == "ok"
    assert moved["lag"] == 0
    assert status["heartbeat_age_ms"] >= 0
    produce(pair.a, "moved", ["late", "later"])
    (status,) = run(capsys, "status", str(ready))
    (moved,) = [each for each in status["partitions"] if each["topic"] == "moved"]
    assert moved["lag"] == 2
    assert 0 <= moved["lag_ms"] < 60_000


def test_failover_without_the_source_uses_checkpoints(
    pair: Pair, ready: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unreachable = tmp_path / "mm2.properties"
    unreachable.write_text(ready.read_text().replace(pair.a, "127.0.0.1:1"))
    plan = run(capsys, "failover", str(unreachable))
    assert moves_of(plan, "early") == {"x.moved-0": ("commit", 20)}
    assert "x is not reachable" in plan["notes"][0]
    assert committed(pair.admin_b, "early", "x.moved") == 20


def test_failover_commits_exact_offsets_once(
    pair: Pair, ready: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(pair.admin_a, "mover", "moved", 77)
    plan = run(capsys, "failover", str(ready), "--dry-run")
    assert moves_of(plan, "mover") == {"x.moved-0": ("commit", 57)}
    assert [each["repeated"] for each in plan["moves"] if each["group"] == "mover"] == [0]
    assert {"partition": "moved-0", "records": 2} in plan["uncopied"]
    assert committed(pair.admin_b, "mover", "x.moved") is None
    run(capsys, "failover", str(ready))
    assert committed(pair.admin_b, "mover", "x.moved") == 57
    assert moves_of(run(capsys, "failover", str(ready)), "mover") == {"x.moved-0": ("keep", 57)}


def test_failback_translates_in_the_other_direction(
    pair: Pair, ready: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(pair.admin_b, "returning", "x.moved", 63)
    plan = run(capsys, "failback", str(ready), "--dry-run")
    assert moves_of(plan, "returning") == {"moved-0": ("commit", 83)}
    assert "y->x is not enabled" in plan["notes"][0]
    assert committed(pair.admin_a, "returning", "moved") is None
    run(capsys, "failback", str(ready))
    assert committed(pair.admin_a, "returning", "moved") == 83


def test_tables_for_people(pair: Pair, ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(ready), "--partitions"]) == 0
    shown = capsys.readouterr().out
    assert "x->y: " in shown
    assert "moved-0" in shown
    assert main(["failover", str(ready), "--dry-run"]) == 0
    assert "Would commit" in capsys.readouterr().out
    assert main(["failover", str(ready), "--flow", "y->x"]) == 1
    assert "enabled flows: x->y" in capsys.readouterr().err
