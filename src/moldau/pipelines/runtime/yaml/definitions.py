"""A YAML file as definitions of pipelines, one in each of its documents.

name: orders
source: {topic: orders, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: positive, expect: amount > 0, on_fail: dead_letter}
steps:
  - filter: amount > 100
sink: {topic: large-orders, format: json, key: id}
dead_letter: orders-dead
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import yaml

from moldau.pipelines.runtime.definition import (
    FORMATS,
    NAME,
    OUTPUT_MODES,
    STEPS,
    BadDefinition,
    Definition,
    Sink,
    Source,
    Step,
    no_name,
)
from moldau.pipelines.runtime.yaml.checks import CHECK, check_of, require_names_and_letters
from moldau.pipelines.runtime.yaml.sections import Section, compose

_PIPELINE = (
    "name",
    "bootstrap_servers",
    "source",
    "steps",
    "checks",
    "sink",
    "sinks",
    "dead_letter",
    "trigger",
    "checkpoint",
    "exactly_once",
    "config",
)
_SOURCE = (
    "topic",
    "topics",
    "pattern",
    "format",
    "schema",
    "key_format",
    "key_schema",
    "path",
    "starting_offsets",
    "options",
)
_SINK = ("topic", "format", "key", "key_format", "path", "output_mode", "partition_by", "options")

_INTERVAL = re.compile(r"(\d+)\s*(ms|milliseconds?|s|seconds?|min|minutes?|h|hours?|days?)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours"}
#: Formats whose one column needs no name.
_SINGLE = {"string": "value STRING", "bytes": "value BINARY"}


def read_definitions(file: Path) -> list[Definition]:
    """All pipelines of a file."""
    try:
        text = file.read_text()
    except OSError as error:
        raise BadDefinition(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadDefinition(f"{file}: this is not text in UTF-8") from error
    documents = compose(file, text)
    if not documents:
        raise BadDefinition(f"{file}: there is no pipeline in it; it begins with the key 'name'")
    return [_definition(file, document) for document in documents]


def trigger_of(text: str) -> Mapping[str, Any] | None:
    """A trigger as Spark takes it: an interval, or `available_now`."""
    if text.lower().replace("-", "_") in ("available_now", "availablenow", "once"):
        return {"availableNow": True}
    found = _INTERVAL.fullmatch(text.lower())
    return {"processingTime": f"{found[1]} {_UNITS.get(found[2], found[2])}"} if found else None


def _definition(file: Path, node: yaml.Node) -> Definition:
    section = Section(file, node, "pipeline", _PIPELINE)
    name = section.needed("name")
    if not NAME.fullmatch(name):
        section.fail(no_name(name), section.node("name"))
    if not section.has("source"):
        section.fail("pipeline needs the key 'source'")
    source = _source(section.section("source", _SOURCE))
    definition = Definition(
        name=name,
        file=file,
        source=source,
        sinks=_sinks(section),
        steps=tuple(_step(file, item) for item in section.items("steps")),
        checks=tuple(check_of(Section(file, item, "checks", CHECK)) for item in section.items("checks")),
        bootstrap_servers=section.text("bootstrap_servers"),
        dead_letter=section.text("dead_letter"),
        trigger=_trigger(section),
        checkpoint=section.text("checkpoint"),
        exactly_once=section.flag("exactly_once", True),
        config=section.pairs("config"),
    )
    require_names_and_letters(section, definition)
    return definition


def _source(section: Section) -> Source:
    topics = section.texts("topic") + section.texts("topics")
    pattern = section.text("pattern")
    if topics and pattern:
        section.fail("source reads topics or a pattern of topics, not both", section.node("pattern"))
    options = section.pairs("options")
    starting = section.text("starting_offsets")
    if starting is not None:
        options["startingOffsets"] = starting
    if not topics and pattern is None:
        return Source(
            format=section.needed("format"),
            schema=_schema(section, "schema"),
            path=section.text("path"),
            options=options,
        )
    value_format, schema = _format(section, "format", "schema")
    key_format, key_schema = _format(section, "key_format", "key_schema")
    return Source(topics, pattern, value_format, schema, key_format, key_schema, options=options)


def _format(section: Section, key: str, schema_key: str) -> tuple[str | None, str | None]:
    """A format of records, and the columns that are in it."""
    name = section.choice(key, FORMATS, "") or None
    schema = _schema(section, schema_key)
    if name is None:
        if schema is not None:
            section.fail(
                f"source.{schema_key} needs source.{key}: {', '.join(FORMATS)}", section.node(schema_key)
            )
        return None, None
    schema = schema or _SINGLE.get(name)
    if schema is None:
        section.fail(f"source.{key} {name} needs source.{schema_key}, such as 'id LONG, name STRING'")
    return ("kafka" if name == "string" else name), schema


def _schema(section: Section, key: str) -> str | None:
    """Columns as `id LONG, name STRING`, or as a mapping of names to types."""
    if section.has(key) and isinstance(section.node(key), yaml.MappingNode):
        return ", ".join(f"`{name}` {kind}" for name, kind in section.pairs(key).items())
    return section.text(key)


def _sinks(section: Section) -> tuple[Sink, ...]:
    if section.has("sink") == section.has("sinks"):
        section.fail("pipeline needs one of the keys 'sink' and 'sinks'")
    if section.has("sink"):
        return (_sink(section.section("sink", _SINK)),)
    sinks = tuple(_sink(Section(section.file, item, "sinks", _SINK)) for item in section.items("sinks"))
    if not sinks:
        section.fail("pipeline.sinks is empty", section.node("sinks"))
    return sinks


def _sink(section: Section) -> Sink:
    topic = section.text("topic")
    if topic is None:
        name: str | None = section.needed("format")
    else:
        name = section.choice("format", FORMATS, "") or None
    return Sink(
        topic=topic,
        format="kafka" if name == "string" else name,
        key=section.text("key"),
        key_format=section.choice("key_format", FORMATS, "kafka").replace("string", "kafka"),
        path=section.text("path"),
        output_mode=cast(
            Literal["append", "update", "complete"], section.choice("output_mode", OUTPUT_MODES, "append")
        ),
        partition_by=section.texts("partition_by"),
        options=section.pairs("options"),
    )


def _step(file: Path, node: yaml.Node) -> Step:
    section = Section(file, node, "steps", STEPS)
    kinds = [kind for kind in STEPS if section.has(kind)]
    if len(kinds) != 1:
        section.fail(f"a step has one key of {', '.join(STEPS)}, and this one has {len(kinds)}")
    kind = kinds[0]
    if kind == "check":
        return Step(kind, check=check_of(section.section("check", CHECK)), line=section.line)
    if kind == "watermark":
        words = section.section("watermark", ("column", "delay"))
        return Step(kind, (words.needed("column"), words.needed("delay")), line=section.line)
    if kind == "select":
        return Step(kind, section.texts(kind), line=section.line)
    return Step(kind, (section.needed(kind),), line=section.line)


def _trigger(section: Section) -> Mapping[str, Any]:
    text = section.text("trigger")
    if text is None:
        return {"processingTime": "1 second"}
    trigger = trigger_of(text)
    if trigger is None:
        section.fail(
            f"'{text}' is no trigger: an interval such as '5 seconds', or available_now",
            section.node("trigger"),
        )
    return trigger
