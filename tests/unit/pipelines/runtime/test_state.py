"""The state folder, shared by processes that may die."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.runtime.state import AlreadyRunning, StateFolder, Status


def test_status_round_trip(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    assert folder.names() == []
    assert folder.read("orders") is None
    with folder.supervised("r1"):
        folder.write(Status("orders", state="running", run="r1", restarts=2, checks={"a": 1}))
        assert folder.names() == ["orders"]
        assert folder.read("orders") == Status("orders", "running", run="r1", restarts=2, checks={"a": 1})


def test_pipeline_without_supervisor_is_dead_unless_it_has_ended(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with folder.supervised("r1"):
        folder.write(Status("orders", state="running", run="r1"))
        folder.write(Status("clicks", state="finished", run="r1"))
    found = {name: status.state for name in folder.names() if (status := folder.read(name)) is not None}
    assert found == {"orders": "dead", "clicks": "finished"}


def test_pipeline_is_run_by_one_driver_at_a_time(tmp_path: Path) -> None:
    folder, other = StateFolder(tmp_path), StateFolder(tmp_path)
    folder.write(Status("orders", run="r1", supervisor=4711))
    with folder.running(["orders", "clicks"]):
        refusal = "already run by process 4711; to stop it: moldau pipeline stop orders"
        with pytest.raises(AlreadyRunning, match=refusal), other.running(["more", "orders"]):
            pass
        with other.running(["more"]):
            pass
    with other.running(["orders"]):
        pass


def test_stop_request_lasts_until_it_is_cleared(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.write(Status("orders"))
    assert not folder.stop_requested("orders")
    folder.request_stop("orders")
    assert folder.stop_requested("orders")
    folder.clear_stop("orders")
    folder.clear_stop("orders")
    assert not folder.stop_requested("orders")


def test_logs_of_the_last_runs_are_kept(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    for number in range(15):
        with folder.supervised(f"r{number}") as log:
            log.write_text("x")
    assert len(list((tmp_path / ".runs").glob("*.log"))) == 10
    assert folder.log_of("r14").exists()
