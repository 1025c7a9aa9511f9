"""Pipeline definitions in YAML, and the errors of invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.runtime.definition import AtMost, BadDefinition, Check, Definition
from moldau.pipelines.runtime.yaml.definitions import read_definitions, trigger_of

WHOLE = """\
name: orders
bootstrap_servers: localhost:9092
source:
  topics: [orders, old-orders]
  format: json
  schema: {id: long, amount: double}
  key_format: string
  key_schema: customer STRING
  starting_offsets: latest
  options: {maxOffsetsPerTrigger: 1000}
checks:
  - {name: positive, expect: amount > 0, on_fail: dead_letter, at_most: 5%}
  - {name: known, expect: customer IS NOT NULL}
steps:
  - watermark: {column: at, delay: 10 minutes}
  - filter: amount > 10
  - select: [id, amount * 2 AS twice]
  - sql: SELECT * FROM input
  - python: own.py:enrich
  - check: {name: small, expect: twice < 100, on_fail: warn}
sinks:
  - {topic: large, format: json, key: id, output_mode: update}
  - {format: parquet, path: out, partition_by: [id, day]}
dead_letter: orders-dead
trigger: 500 ms
exactly_once: false
config: {spark.sql.shuffle.partitions: 3}
"""
SMALL = "name: a\nsource: {topic: in}\nsink: {topic: out}\n"


def read(folder: Path, text: str) -> list[Definition]:
    file = folder / "p.yaml"
    file.write_text(text)
    return read_definitions(file)


def test_all_keys_of_a_definition(tmp_path: Path) -> None:
    (definition,) = read(tmp_path, WHOLE)
    source = definition.source
    assert source.topics == ("orders", "old-orders")
    assert (source.format, source.schema) == ("json", "`id` long, `amount` double")
    assert (source.key_format, source.key_schema) == ("kafka", "customer STRING")
    assert source.options == {"maxOffsetsPerTrigger": "1000", "startingOffsets": "latest"}
    assert definition.checks == (
        Check("positive", "amount > 0", "dead_letter", AtMost(5, True)),
        Check("known", "customer IS NOT NULL", "fail"),
    )
    assert [(step.kind, step.arguments) for step in definition.steps] == [
        ("watermark", ("at", "10 minutes")),
        ("filter", ("amount > 10",)),
        ("select", ("id", "amount * 2 AS twice")),
        ("sql", ("SELECT * FROM input",)),
        ("python", ("own.py:enrich",)),
        ("check", ()),
    ]
    topic, files = definition.sinks
    assert (topic.topic, topic.key, topic.output_mode) == ("large", "id", "update")
    assert (files.format, files.path, files.partition_by) == ("parquet", "out", ("id", "day"))
    assert definition.trigger == {"processingTime": "500 milliseconds"}
    assert not definition.exactly_once
    assert definition.config == {"spark.sql.shuffle.partitions": "3"}


def test_each_document_is_a_pipeline(tmp_path: Path) -> None:
    assert [each.name for each in read(tmp_path, f"{SMALL}---\n{SMALL.replace('name: a', 'name: b')}")] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL.replace("source: {topic: in}", "source: {topic: in, formt: json}"),
         "p.yaml:2: pipeline.source has no key 'formt'; did you mean 'format'?"),
        (SMALL + "stepps: []\n", "p.yaml:4: pipeline has no key 'stepps'; did you mean 'steps'?"),
        (SMALL + "trigger: soon\n", "p.yaml:4: 'soon' is not a trigger"),
        (SMALL + "exactly_once: maybe\n", "p.yaml:4: pipeline.exactly_once has no value 'maybe'"),
        ("name: a\nsink: {topic: out}\n", "p.yaml:1: pipeline needs the key 'source'"),
        ("name: a\nsource: {topic: in}\n", "needs exactly one of the keys 'sink' and 'sinks'"),
        (SMALL.replace("{topic: in}", "{topic: in, format: json}"), "json needs source.schema, such as 'id"),
        (SMALL.replace("{topic: in}", "{topic: in, format: jsn}"), "no value 'jsn'; did you mean 'json'?"),
        (SMALL.replace("{topic: in}", "{topic: in, pattern: x}"), "either topics or a pattern, not both"),
        (SMALL.replace("name: a", "name: a/b"), "p.yaml:1: 'a/b' is not a valid name"),
        (SMALL + "steps:\n  - filter: x\n    sql: y\n", "p.yaml:5: a step needs exactly one of"),
        (SMALL + "steps:\n  - fliter: x\n", "p.yaml:5: steps has no key 'fliter'; did you mean 'filter'?"),
        (SMALL + "checks:\n  - {name: a, expect: b, on_fail: explode}\n", "on_fail has no value 'explode'"),
        (SMALL + "checks:\n  - {name: a, expect: b, on_fail: dead_letter}\n", "needs the key 'dead_letter'"),
        (SMALL + "checks:\n  - {name: a, expect: b}\n  - {name: a, expect: c}\n", "two checks are named 'a'"),
        (SMALL + "checks:\n  - {name: a, expect: b, on_fail: warn, at_most: x}\n", "'x' is neither a number"),
        (SMALL + "checks:\n  - {name: a, expect: b, at_most: 5%}\n", "use at_most with drop"),
        ("name: a\nsource: {format: rate}\nsink: {topic: out}\ndead_letter: d\n", "needs a source"),
        ("name: [a\nsource: x\n", "invalid YAML"),
        ("- a\n- b\n", "p.yaml:1: pipeline must be a mapping with the keys name"),
        ("", "no pipeline found"),
        (SMALL + "name: b\n", "p.yaml:4: pipeline contains the key 'name' twice"),
    ],
)  # fmt: skip
def test_error_names_file_line_and_remedy(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)


def test_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadDefinition, match="No such file"):
        read_definitions(tmp_path / "nothing.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(BadDefinition, match="not UTF-8 text"):
        read_definitions(tmp_path / "binary.yaml")


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("available_now", {"availableNow": True}),
        ("once", {"availableNow": True}),
        ("5 seconds", {"processingTime": "5 seconds"}),
        ("2s", {"processingTime": "2 seconds"}),
        ("1 min", {"processingTime": "1 minutes"}),
        ("often", None),
    ],
)
def test_trigger_is_an_interval_or_available_now(text: str, trigger: dict[str, object] | None) -> None:
    assert trigger_of(text) == trigger
