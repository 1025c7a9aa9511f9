"""Groups of distributed workers, with state topics of their own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.connect import STRINGS, Worker

StartWorker = Callable[..., Worker]


def group_properties(bootstrap: str, group: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.partitions": "3",
        "status.storage.partitions": "2",
        "offset.flush.interval.ms": "200",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        "consumer.session.timeout.ms": "6000",
        "scheduled.rebalance.max.delay.ms": "0",
        "tasks.host": "threads",
        **STRINGS,
    }


@pytest.fixture
def group() -> str:
    return f"connect-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def start_worker(bootstrap: str, group: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts workers of one group: `start_worker(**settings)`; they are stopped afterwards."""
    workers: list[Worker] = []

    def start(**settings: str) -> Worker:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        worker = Worker(
            tmp_path, {**group_properties(bootstrap, group), **given}, command="connect-distributed"
        )
        workers.append(worker)
        return worker.start()

    yield start
    for worker in workers:
        worker.kill()
