"""Through the worker: from a topic to a table, with kill -9, dead letters and offsets that a user sets."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from tests.harness.connect import Worker, standalone_properties
from tests.harness.mirror import produce, values_of
from tests.harness.tables import IcebergLake
from tests.harness.waiting import eventually

JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def documents(start: int, end: int) -> list[str]:
    return [json.dumps({"id": number, "name": f"n{number}"}) for number in range(start, end)]


def test_a_killed_worker_neither_loses_nor_repeats_rows(bootstrap: str, tmp_path: Path) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    lake = IcebergLake(tmp_path)
    connector = {
        **lake.config(**{"iceberg.control.commit.interval-ms": "200"}),
        **JSON,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "topics": topic,
        "tasks.max": "1",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    produce(bootstrap, topic, documents(0, 500))
    properties = {**standalone_properties(bootstrap, tmp_path), "consumer.session.timeout.ms": "6000"}
    worker = Worker(tmp_path, properties, [connector])
    with worker:
        eventually(lambda: lake.count() > 0, timeout=90, what=worker.log)
        produce(bootstrap, topic, [*documents(500, 1000), '"no row"', '{"id": "no number"}'])
        worker.kill()
    produce(bootstrap, topic, documents(1000, 1500))
    with worker:
        eventually(lambda: lake.count() >= 1500, timeout=60, what=f"{worker.log} {worker.states('lake')}")
        worker.stop()
    assert [row["id"] for row in lake.rows()] == list(range(1500))
    assert values_of(bootstrap, f"{topic}-dead")[-2:] == ['"no row"', '{"id": "no number"}']
