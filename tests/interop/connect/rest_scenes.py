"""The requests to Kafka Connect's worker and to ours, in their order, with the intended differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

JSON = "application/json"
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines", "tasks.max": "2"}
SINK = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"}
TRANSFORM = "org.apache.kafka.connect.transforms.InsertField$Value"
PREDICATE = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"

BAD_JSON = "Kafka Connect answers 500 to a body that it cannot parse; ours is 400, with a sentence."
NO_VALUES = "Ours names the settings without their values, which may be secrets."
NO_FILE = "Ours refuses a file source without a file: tasks have no standard input."
LATER = "Kafka Connect forgets the topics some time after its answer, ours before."
OWN_LOGGERS = "The loggers are those of the programs."
KNOWN_PLUGINS = "Ours has more plugins, and lists their names only."


class Step(NamedTuple):
    """A request; or, with `states`, waiting until a connector and its tasks have these states."""

    method: str
    path: str
    body: Any = None
    kind: str = JSON
    #: Why only the status, or nothing, is compared.
    difference: str = ""
    states: tuple[str, str, tuple[str, ...]] | None = None


def wait(name: str, connector: str = "RUNNING", *tasks: str) -> Step:
    return Step("", "", states=(name, connector, tasks))


def get(path: str, difference: str = "") -> Step:
    return Step("GET", path, difference=difference)


def put(path: str, body: Any = None, difference: str = "") -> Step:
    return Step("PUT", path, body, difference=difference)


def post(path: str, body: Any = None, difference: str = "") -> Step:
    return Step("POST", path, body, difference=difference)


def patch(path: str, body: Any = None, difference: str = "") -> Step:
    return Step("PATCH", path, body, difference=difference)


def delete(path: str) -> Step:
    return Step("DELETE", path)


def offsets(partition: Any, offset: Any) -> dict[str, Any]:
    return {"offsets": [{"partition": partition, "offset": offset}]}


def create(name: str, config: Mapping[str, Any], difference: str = "", **more: Any) -> Step:
    return post("/connectors", {"name": name, "config": dict(config), **more}, difference)


def steps() -> Iterator[Step]:
    yield from _unknown()
    yield from _refused()
    yield from _running()
    yield from _changes()
    yield from _offsets()
    yield from _plugins()
    yield from _worker()
    yield from _end()


def _unknown() -> Iterator[Step]:
    yield from (
        get("/health"),
        get("/connectors"),
        get("/nothing"),
        post("/connectors/x"),
        delete("/connectors"),
    )
    for path in ("", "/status", "/config", "/tasks", "/tasks/0/status", "/topics", "/offsets"):
        yield get(f"/connectors/none{path}")
    for path in ("/pause", "/stop", "/resume", "/topics/reset"):
        yield put(f"/connectors/none{path}")
    for path in ("/restart", "/restart?includeTasks=true", "/tasks/0/restart"):
        yield post(f"/connectors/none{path}")
    yield from (delete("/connectors/none"), delete("/connectors/none/offsets"))
    yield patch("/connectors/none/config", {"a": "b"})
    yield patch("/connectors/none/offsets", offsets({"a": 1}, None))


def _refused() -> Iterator[Step]:
    for body in (b"{", b"[]", {}, {"name": "x"}, {"name": "x", "config": {}, "foo": 1}):
        yield post("/connectors", body, BAD_JSON)
    yield create("x", SOURCE, BAD_JSON, initial_state="foo")
    yield post("/connectors", {"config": {}}, NO_VALUES)
    yield create("x", {}, NO_VALUES)
    yield put("/connectors/x/config", {"a": 1}, NO_VALUES)
    yield create("x", {"connector.class": "Nope"}, KNOWN_PLUGINS)
    yield Step("POST", "/connectors", b"x", "text/plain")
    yield create("", SOURCE)
    yield create("x", {"name": "y", **SOURCE})
    yield create("x", {**SOURCE, "tasks.max": "0"})
    yield create("x", {**SINK, "topics": ""})
    yield create("x", {**SOURCE, "transforms": "a"})
    yield put("/connectors/x/config", {**SOURCE, "name": "y"})
    yield put("/connectors/x/config", {"connector.class": "FileStreamSource"}, NO_FILE)


def _running() -> Iterator[Step]:
    yield create("paused", SOURCE, initial_state="PAUSED")
    yield create("stopped", SOURCE, initial_state="stopped")
    yield create("in", SOURCE)
    yield create("in", SOURCE)
    yield put("/connectors/out/config", SINK)
    yield wait("in", "RUNNING", "RUNNING")
    yield wait("out", "RUNNING", "RUNNING")
    yield wait("stopped", "STOPPED")
    for query in ("?expand=info&expand=status", "?expand=info", "?expand=foo"):
        yield get(f"/connectors{query}")
    for path in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/tasks/7/status", "/topics"):
        yield get(f"/connectors/in{path}")
    yield from (get("/connectors/in/tasks/x/status"), get("/connectors/in/tasks-config"))
    yield get("/connectors/out/tasks")
    yield from (get("/connectors/paused/status"), get("/connectors/stopped/tasks"))
    yield patch("/connectors/in/offsets", offsets({"filename": "in.txt"}, {"position": 0}))
    yield delete("/connectors/in/offsets")


def _changes() -> Iterator[Step]:
    yield put("/connectors/in/config", {**SOURCE, "batch.size": "10"})
    yield patch("/connectors/in/config", {"batch.size": None, "tasks.max": "1"})
    yield patch("/connectors/in/config", {"tasks.max": "x"})
    yield patch("/connectors/in/config", b"[1]", BAD_JSON)
    yield wait("in", "RUNNING", "RUNNING")
    yield from (get("/connectors/in/config"), post("/connectors/in/restart"))
    yield wait("in", "RUNNING", "RUNNING")
    for query in (
        "includeTasks=true&onlyFailed=false",
        "includeTasks=true&onlyFailed=true",
        "onlyFailed=true",
    ):
        yield post(f"/connectors/in/restart?{query}")
        yield wait("in", "RUNNING", "RUNNING")
    yield from (post("/connectors/in/tasks/0/restart"), post("/connectors/in/tasks/5/restart"))
    yield wait("in", "RUNNING", "RUNNING")
    yield from (put("/connectors/in/pause"), wait("in", "PAUSED", "PAUSED"), get("/connectors/in/status"))
    yield from (put("/connectors/in/resume"), wait("in", "RUNNING", "RUNNING"))
    yield from (put("/connectors/in/stop"), put("/connectors/out/stop"))
    yield from (wait("in", "STOPPED"), wait("out", "STOPPED"))
    yield from (get("/connectors/in/status"), get("/connectors/in"), get("/connectors/in/tasks"))


def _offsets() -> Iterator[Step]:
    path, file = "/connectors/in/offsets", {"filename": "in.txt"}
    yield from (patch(path, offsets(file, {"position": 4})), get(path))
    for partition, offset in (
        (file, {"position": -4}),
        (file, {"position": "x"}),
        (None, {"position": 1}),
        ({"x": 1}, {"position": 1}),
        (file, None),
    ):
        yield patch(path, offsets(partition, offset))
    yield from (patch(path, {"offsets": []}), patch(path, {}), get(path))
    yield patch(path, {"foo": 1}, BAD_JSON)
    path, zero = "/connectors/out/offsets", {"kafka_topic": "lines", "kafka_partition": 0}
    one = {"kafka_offset": 1}
    yield from (patch(path, offsets(zero, one)), get(path))
    for partition, wanted in (
        ({"kafka_topic": "lines", "kafka_partition": "0"}, {"kafka_offset": "1"}),
        ({"kafka_topic": "lines"}, one),
        ({"kafka_topic": None, "kafka_partition": 0}, one),
        ({"kafka_topic": "lines", "kafka_partition": None}, one),
        ({"kafka_topic": "lines", "kafka_partition": "z"}, one),
        (zero, {"o": 1}),
        (zero, {"kafka_offset": "q"}),
        (zero, None),
    ):
        yield patch(path, offsets(partition, wanted))
    yield patch(
        path,
        offsets({"kafka_topic": "nope", "kafka_partition": 0}, one),
        "Ours says what the broker refused.",
    )
    yield from (delete(path), get(path), delete("/connectors/in/offsets"), delete(path))


def _plugins() -> Iterator[Step]:
    def validate(plugin: str, config: Mapping[str, Any], difference: str = "") -> Step:
        return put(f"/connector-plugins/{plugin}/config/validate", dict(config), difference)

    yield validate("FileStreamSource", {"name": "v", **SOURCE})
    yield validate("FileStreamSink", {"name": "v", **SINK})
    yield validate("FileStreamSinkConnector", SINK)
    yield validate("FileStreamSource", SINK)
    yield validate("FileStreamSource", {}, NO_VALUES)
    yield validate("Nope", {"connector.class": "Nope"}, KNOWN_PLUGINS)
    wrong = {
        **SOURCE,
        "tasks.max": "x",
        "transforms": "a,b",
        "transforms.a.type": TRANSFORM,
        "transforms.a.predicate": "p",
        "transforms.b.type": "Nope",
        "predicates": "p",
        "predicates.p.type": PREDICATE,
        "predicates.p.pattern": "a.*",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "maybe",
        "value.converter": "Nope",
        "unknown": "1",
        "errors.tolerance": "some",
        "topic.creation.groups": "g",
        "topic.creation.default.partitions": "0",
    }
    yield validate("FileStreamSource", wrong)
    both = {"topics.regex": "x", "errors.deadletterqueue.topic.name": "lines"}
    yield validate("FileStreamSink", {**SINK, **both})
    yield validate("FileStreamSink", {**SINK, "topics": "", "topics.regex": "["})
    yield validate("FileStreamSource", {**SOURCE, "exactly.once.support": "required"})
    yield put(
        "/connector-plugins/FileStreamSource/config/validate",
        {**SOURCE, "producer.override.acks": "1"},
        "Ours does not describe the settings of clients.",
    )
    yield get("/connector-plugins/FileStreamSource/config")
    yield get("/connector-plugins/org.apache.kafka.connect.file.FileStreamSinkConnector/config")
    yield get("/connector-plugins/org.apache.kafka.connect.json.JsonConverter/config")
    yield get(f"/connector-plugins/{TRANSFORM}/config")
    yield get("/connector-plugins/org.apache.kafka.connect.transforms.predicates.HasHeaderKey/config")
    yield get("/connector-plugins/org.apache.kafka.connect.storage.SimpleHeaderConverter/config")
    yield get("/connector-plugins/Nope/config")


def _worker() -> Iterator[Step]:
    yield from (get("/"), get("/connector-plugins?connectorsOnly=true", KNOWN_PLUGINS))
    logger = "/admin/loggers/org.example.Some"
    yield from (get(logger), get("/admin/loggers", OWN_LOGGERS))
    for body in ({"level": "LOUD"}, {"level": None}, {}):
        yield put(logger, body)
    yield from (put(logger, {"level": "warn"}), get(logger))
    yield put(f"{logger}?scope=worker", {"level": "ERROR"})
    yield put(f"{logger}?scope=nothing", {"level": "INFO"})
    yield put(f"{logger}?scope=cluster", {"level": "LOUD"})
    yield put(f"{logger}?scope=cluster", {"level": "DEBUG"})
    yield put("/connectors/in/topics/reset")
    yield get("/connectors/in/topics", LATER)


def _end() -> Iterator[Step]:
    for name in ("in", "out", "paused", "stopped"):
        yield delete(f"/connectors/{name}")
        yield wait(name, "404")
    yield from (get("/connectors"), get("/connectors/in/status"))
