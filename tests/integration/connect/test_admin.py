"""The worker itself over REST: metrics, and log levels of the group."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.request import urlopen

from tests.harness.connect import Worker, lines_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import StartWorker

LOGGER = "/admin/loggers/moldau.pipelines.connect"


def samples(worker: Worker) -> dict[str, float]:
    with urlopen(f"http://127.0.0.1:{worker.port}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(kafka_connect_\S+) (\S+)$", text, re.M)}


def test_metrics_count_the_records_of_tasks_and_the_lag_of_sinks(
    group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker()
    source, sink, topic = f"{group}-in", f"{group}-out", f"{group}-lines"
    (tmp_path / "in.txt").write_text("".join(f"{number}\n" for number in range(100)))
    file = {"file": str(tmp_path / "in.txt"), "topic": topic}
    worker.create(source, {"connector.class": "FileStreamSource", **file})
    out = tmp_path / "out.txt"
    worker.create(sink, {"connector.class": "FileStreamSink", "file": str(out), "topics": topic})
    eventually(lambda: len(lines_of(out)) == 100, what=worker.log)
    records = {
        f'kafka_connect_source_task_source_record_write_total{{connector="{source}",task="0"}}': 100,
        f'kafka_connect_source_task_source_record_poll_total{{connector="{source}",task="0"}}': 100,
        f'kafka_connect_sink_task_sink_record_read_total{{connector="{sink}",task="0"}}': 100,
        f'kafka_connect_sink_task_sink_record_send_total{{connector="{sink}",task="0"}}': 100,
        f'kafka_connect_sink_lag_records{{connector="{sink}",topic="{topic}",partition="0"}}': 0,
        f'kafka_connect_connector_task_running{{connector="{sink}",task="0"}}': 1,
        "kafka_connect_worker_connector_count": 2,
        "kafka_connect_worker_task_count": 2,
    }
    eventually(lambda: records.items() <= samples(worker).items(), timeout=30, what=worker.log)


def test_log_levels_are_set_for_one_worker_or_for_all(group: str, start_worker: StartWorker) -> None:
    first, second = start_worker(), start_worker()

    def levels() -> list[str]:
        return [worker.api("GET", LOGGER).body["level"] for worker in (first, second)]

    answer = first.api("PUT", LOGGER, {"level": "DEBUG"})
    assert answer.status == 200
    assert "moldau.pipelines.connect" in answer.body
    assert levels()[0] == "DEBUG"
    assert levels()[1] != "DEBUG"
    answer = eventually(
        lambda: (
            (found := second.api("PUT", f"{LOGGER}?scope=cluster", {"level": "ERROR"})).status != 409
            and found
        )
    )
    assert answer.status == 204
    eventually(lambda: levels() == ["ERROR", "ERROR"], timeout=20)
    assert first.api("PUT", LOGGER, {"level": "LOUD"}).status == 404
