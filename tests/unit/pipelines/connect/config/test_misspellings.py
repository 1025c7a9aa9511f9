"""Names that are almost known ones: refused with a suggestion; other unknown names are accepted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from moldau.pipelines.connect.config.misspellings import misspelt
from moldau.pipelines.connect.config.worker import WorkerSettings, with_defaults
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.worker.validation import Validation, errors_of

KNOWN = {"tasks.max", "errors.tolerance", "file", "topics"}
JSON = "org.apache.kafka.connect.json.JsonConverter"
SINK = {"name": "s", "connector.class": "FileStreamSink", "file": "f", "topics": "t"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tasks.maxx", "tasks.max"),
        ("task.max", "tasks.max"),
        ("taks.max", "tasks.max"),
        ("tasks.mux", "tasks.max"),
        ("atsks.max", "tasks.max"),
        ("error.tolerance", "errors.tolerance"),
        ("flie", "file"),
        ("fiel", "file"),
        ("topic", "topics"),
    ],
)
def test_neighbours_of_known_names_are_found(name: str, meant: str) -> None:
    assert misspelt([name], KNOWN) == {name: meant}


@pytest.mark.parametrize(
    "name",
    ["unknown", "tasks.max", "fi", "fl", "tasks.minimum", "ffiles", "producer.files", "transforms.file"],
)
def test_other_names_are_none(name: str) -> None:
    assert misspelt([name], KNOWN) == {}


def validated(config: Mapping[str, str]) -> list[str]:
    worker = WorkerSettings.distributed(with_defaults({"bootstrap.servers": "localhost:9092"}, "group"))
    infos = Validation(Plugins(), worker).validate(config)
    errors = errors_of(infos)
    assert infos["error_count"] == len(errors)
    return errors


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tasks.maxx", "tasks.max"),
        ("error.tolerance", "errors.tolerance"),
        ("topic.regex", "topics.regex"),
        ("value.converter.schema.enable", "value.converter.schemas.enable"),
    ],
)
def test_validation_names_the_setting_and_what_was_meant(name: str, meant: str) -> None:
    config = {**SINK, "value.converter": JSON, name: "true"}
    assert validated(config) == [f"Unknown configuration {name}. Did you mean {meant}?"]


def test_settings_of_plugins_clients_and_other_kinds_of_connectors_are_accepted() -> None:
    others = {
        "producer.override.ack": "1",
        "transforms": "a",
        "transforms.a.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "transforms.a.headers": "x",
        "exactly.once.support": "requested",
        "unknown": "1",
        "iceberg.table.tasks.max.id-columns": "id",
    }
    assert validated({**SINK, **others}) == []


def test_a_worker_file_with_a_misspelt_name_is_refused() -> None:
    properties = with_defaults({"bootstrap.servers": "b:9092"}, "g")
    WorkerSettings.distributed({**properties, "something.else": "1", "producer.linger.m": "1"})
    with pytest.raises(ConfigError, match=r"ofset\.flush\.interval\.ms\. Did you mean offset\.flush"):
        WorkerSettings.distributed({**properties, "ofset.flush.interval.ms": "1"})
