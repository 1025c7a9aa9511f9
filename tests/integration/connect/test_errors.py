"""Records that cannot be processed, dead letters, and secrets that are never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.harness.connect import lines_of
from tests.harness.mirror import produce, read_all
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import StartWorker
from tests.integration.connectors.http.server import Server

JSON = "org.apache.kafka.connect.json.JsonConverter"
PROVIDERS = "org.apache.kafka.common.config.provider."


def sink(topic: str, **settings: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSink",
        "file": "out.txt",
        "topics": topic,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def test_bad_records_go_to_the_dead_letter_topic_with_headers(
    bootstrap: str, group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    topic, letters, name = f"{group}-in", f"{group}-letters", f"{group}-out"
    produce(bootstrap, topic, ["1", "{bad", "2", "[also bad", "3"])
    config = sink(topic, errors_tolerance="all", errors_deadletterqueue_topic_name=letters)
    config["errors.deadletterqueue.topic.replication.factor"] = "1"
    config["errors.deadletterqueue.context.headers.enable"] = "true"
    worker = start_worker()
    worker.create(name, config)
    eventually(lambda: lines_of(tmp_path / "out.txt") == ["1", "2", "3"], what=worker.log)
    found = eventually(
        lambda: (each := read_all(bootstrap, letters)) and len(each) == 2 and each, what=letters
    )
    assert [each.value() for each in found] == [b"{bad", b"[also bad"]
    headers = {name: value.decode() for name, value in found[0].headers()}
    prefix = "__connect.errors."
    expected = {
        "topic": topic,
        "partition": "0",
        "offset": "1",
        "connector.name": name,
        "task.id": "0",
        "stage": "VALUE_CONVERTER",
        "class.name": JSON,
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
    }
    assert {name: headers[f"{prefix}{name}"] for name in expected} == expected
    assert headers[f"{prefix}exception.message"]
    assert "Traceback" in headers[f"{prefix}exception.stacktrace"]

    def committed() -> Any:
        return worker.api("GET", f"/connectors/{name}/offsets").body["offsets"]

    eventually(
        lambda: [each["offset"] for each in committed()] == [{"kafka_offset": 5}],
        timeout=15,
        what=f"{committed()} {worker.log}",
    )


def test_an_error_that_is_not_tolerated_fails_the_task_until_it_is_restarted(
    bootstrap: str, group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    topic, name = f"{group}-in", f"{group}-out"
    produce(bootstrap, topic, ["1", "{bad", "2"])
    worker = start_worker()
    worker.create(name, sink(topic))
    worker.wait_for(name, tasks=["FAILED"])
    trace = worker.api("GET", f"/connectors/{name}/tasks/0/status").body["trace"]
    first = trace.partition("\n")[0]
    assert first == ("org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler")
    assert trace.splitlines()[1].startswith("Caused by: org.apache.kafka.connect.errors.DataException: ")
    assert worker.api("POST", f"/connectors/{name}/tasks/0/restart").status == 204
    worker.wait_for(name, tasks=["FAILED"])
    # A new configuration starts the task again.
    worker.create(name, sink(topic, errors_tolerance="all"))
    worker.wait_for(name)
    eventually(lambda: lines_of(tmp_path / "out.txt")[-2:] == ["1", "2"], what=worker.log)


def test_secrets_are_used_but_never_shown(
    bootstrap: str, group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    (tmp_path / "secret-input").write_text("read\n")
    (tmp_path / "secrets.properties").write_text(f"path={tmp_path / 'secret-input'}\ntopic={group}-secret\n")
    worker = start_worker(
        config_providers="file,dir",
        config_providers_file_class=f"{PROVIDERS}FileConfigProvider",
        config_providers_dir_class=f"{PROVIDERS}DirectoryConfigProvider",
        config_providers_dir_param_allowed_paths=str(tmp_path / "other"),
    )
    secrets = tmp_path / "secrets.properties"
    config = {
        "connector.class": "FileStreamSource",
        "file": f"${{file:{secrets}:path}}",
        "topic": f"${{file:{secrets}:topic}}",
    }
    worker.create("in", config)
    worker.wait_for("in")
    eventually(lambda: len(read_all(bootstrap, f"{group}-secret")) == 1, what=worker.log)
    shown = [
        worker.api("GET", "/connectors/in").body,
        worker.api("GET", "/connectors/in/tasks").body,
        worker.api("PUT", "/connector-plugins/FileStreamSource/config/validate", config).body,
    ]
    assert shown[0]["config"]["file"] == config["file"]
    assert shown[1][0]["config"]["topic"] == config["topic"]
    records = [str(each.value()) for each in read_all(bootstrap, f"{group}-configs")]
    # Not even in the trace of an error that quotes it, nor in the log.
    worker.create("bad", {**config, "file": f"${{file:{secrets}:path}}/below"})
    worker.wait_for("bad", tasks=["FAILED"])
    shown.append(worker.api("GET", "/connectors/bad/status").body)
    assert "[hidden]/below" in json.dumps(shown[-1])
    for text in (json.dumps(shown), "".join(records), worker.log):
        assert "secret-input" not in text
    # A folder that is not allowed is not read: the variable remains.
    refused = worker.api(
        "PUT",
        "/connector-plugins/FileStreamSource/config/validate",
        {**config, "name": "in", "batch.size": f"${{dir:{tmp_path}:secret-input}}"},
    )
    assert refused.body["error_count"] == 1


def test_secrets_are_neither_in_logs_of_libraries_nor_in_dead_letters(
    bootstrap: str, group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    topic, letters = f"{group}-in", f"{group}-letters"
    (tmp_path / "secrets.properties").write_text("key=top secret/word\n")
    value = json.dumps({"schema": {"type": "struct", "fields": []}, "payload": {}})
    produce(bootstrap, topic, [value])
    worker = start_worker(
        config_providers="file", config_providers_file_class=f"{PROVIDERS}FileConfigProvider"
    )
    # The client of the HTTP sink logs every URL.
    assert worker.api("PUT", "/admin/loggers/root", {"level": "DEBUG"}).status == 200
    secret = f"${{file:{tmp_path / 'secrets.properties'}:key}}"
    with Server(lambda request: (200, None)) as server:
        url = f"{server.url}/rows?key={secret}"
        worker.create("http", {"connector.class": "HttpSink", "topics": topic, "http.api.url": url})
        eventually(lambda: server.requests, what=worker.log)
    assert server.requests[0].query == {"key": "top secret/word"}
    assert "/rows?key=[hidden]" in worker.log
    config = sink(topic, errors_tolerance="all", errors_deadletterqueue_topic_name=letters)
    config |= {
        "value.converter.schemas.enable": "true",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.log.enable": "true",
        "transforms": "field",
        "transforms.field.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.field.fields": secret,
    }
    worker.create("letters", config)
    [letter] = eventually(lambda: read_all(bootstrap, letters), what=worker.log)
    headers = {name: value.decode() for name, value in letter.headers()}
    assert "[hidden]" in headers["__connect.errors.exception.message"]
    for text in (str(headers), worker.log):
        assert "top secret" not in text
        assert "top%20secret" not in text
