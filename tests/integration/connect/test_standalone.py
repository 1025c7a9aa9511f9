"""A standalone worker: the quick start of Kafka's documentation, restarts, and refused configurations."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.harness.connect import STRINGS, Worker, lines_of, standalone_properties
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually


def source(topic: str) -> dict[str, str]:
    return {
        "name": "local-file-source",
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": "test.txt",
        "topic": topic,
    }


def sink(topic: str) -> dict[str, str]:
    return {
        "name": "local-file-sink",
        "connector.class": "FileStreamSink",
        "tasks.max": "1",
        "file": "test.sink.txt",
        "topics": topic,
    }


def test_the_quick_start_of_kafka(bootstrap: str, tmp_path: Path) -> None:
    topic = f"connect-test-{uuid.uuid4().hex[:8]}"
    written = tmp_path / "test.sink.txt"
    (tmp_path / "test.txt").write_text("foo\nbar\n")
    worker = Worker(tmp_path, standalone_properties(bootstrap, tmp_path), [source(topic), sink(topic)])
    with worker:
        eventually(lambda: lines_of(written) == ["foo", "bar"], what=worker.log)
        assert values_of(bootstrap, topic) == [
            '{"schema":{"type":"string","optional":false},"payload":"foo"}',
            '{"schema":{"type":"string","optional":false},"payload":"bar"}',
        ]
        with (tmp_path / "test.txt").open("a") as file:
            file.write("Another line\n")
        eventually(lambda: lines_of(written)[2:] == ["Another line"])
        assert worker.api("GET", "/connectors").body == ["local-file-source", "local-file-sink"]
        assert worker.stop() == 0
    # A worker that is started again continues after the stored offsets.
    with (tmp_path / "test.txt").open("a") as file:
        file.write("after the restart\n")
    with worker:
        eventually(lambda: lines_of(written)[3:] == ["after the restart"], what=worker.log)
        worker.kill()
    assert lines_of(written) == ["foo", "bar", "Another line", "after the restart"]


def test_a_connector_that_is_not_valid_stops_the_worker(bootstrap: str, tmp_path: Path) -> None:
    broken = {**source("any"), "tasks.max": "none", "fiel": "x", "transforms": "a"}
    worker = Worker(tmp_path, {**standalone_properties(bootstrap, tmp_path), **STRINGS}, [broken])
    worker.begin()
    assert worker.wait() == 1
    assert "Invalid value none for configuration tasks.max" in worker.log
    assert 'Missing required configuration "transforms.a.type"' in worker.log


def test_worker_settings_that_are_not_valid_are_named(bootstrap: str, tmp_path: Path) -> None:
    properties = standalone_properties(bootstrap, tmp_path)
    del properties["offset.storage.file.filename"]
    worker = Worker(tmp_path, properties)
    worker.begin()
    assert worker.wait() == 1
    assert 'Missing required configuration "offset.storage.file.filename"' in worker.log
    assert "Traceback" not in worker.log
