"""Deliberate violations of each durability rule are detected within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.quorum.metadata_log import MetadataLog
from moldau.storage.disk.disk import File
from moldau.storage.log import recovery
from moldau.storage.log.config import LogConfig
from moldau.storage.log.flush import LogFlusher
from moldau.testing.simulation.disk import SimulatedDisk, SimulatedFile
from tests.simulation.crash_points import explore
from tests.simulation.logs import SMALL, Logs
from tests.simulation.node_run import run_seed

_SEEDS = 12


def _found_by_simulations() -> bool:
    for seed in range(_SEEDS):
        try:
            run_seed(f"broken/{seed}")
        except Exception:
            return True
    return False


async def _appends(logs: Logs) -> None:
    await logs.start()
    log = await logs.create()
    for number in range(12):
        logs.append(log, 1, size=300 + number * 17)


async def _large_appends(logs: Logs) -> None:
    await logs.start()
    log = await logs.create()
    logs.append(log)
    logs.flush(log)
    for _ in range(12):
        logs.append(log, 1, size=3000)


def test_a_sync_that_does_nothing_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedFile, "sync", lambda self: None)
    with pytest.raises(AssertionError, match=r"lost|gone"):
        explore(_appends, LogConfig(**SMALL, flush_messages=1))


def test_missing_directory_syncs_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync_dir", lambda self, path: None)
    with pytest.raises(AssertionError, match=r"lost|gone"):
        explore(_appends, LogConfig(**SMALL, flush_messages=1))


def test_a_recovery_without_checksums_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "verify_batch", lambda *args: None)
    with pytest.raises((AssertionError, Exception), match=r"damaged|checksum|never written|CORRUPT"):
        explore(_large_appends, LogConfig(segment_bytes=100_000), losses=10)


def test_a_flush_without_recovery_point_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFlusher, "sync_directory_locked", lambda self: None)
    with pytest.raises(AssertionError, match=r"lost|gone"):
        explore(_appends, LogConfig(**SMALL, flush_messages=1))


def test_metadata_committed_without_sync_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetadataLog, "flush", lambda self: None)
    assert _found_by_simulations()


def test_a_retried_failed_sync_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the second, successful sync had written anything to disk."""

    def sync_twice(original: Callable[[File], None]) -> Callable[[File], None]:
        def sync(file: File) -> None:
            try:
                original(file)
            except OSError:
                original(file)

        return sync

    monkeypatch.setattr(SimulatedFile, "sync", sync_twice(SimulatedFile.sync))
    assert _found_by_simulations()
