"""Read pipeline definitions from a YAML file, one per document.

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
    ON_FAIL,
    OUTPUT_MODES,
    REGISTRY_FORMATS,
    STEPS,
    AtMost,
    BadDefinition,
    Check,
    Definition,
    OnFail,
    Sink,
    Source,
    Step,
    invalid_name,
)
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
    "registry",
    "path",
    "starting_offsets",
    "options",
)
_CHECK = ("name", "expect", "on_fail", "at_most")
_SINK = ("topic", "format", "key", "key_format", "registry", "path", "output_mode", "partition_by", "options")

_INTERVAL = re.compile(r"(\d+)\s*(ms|milliseconds?|s|seconds?|min|minutes?|h|hours?|days?)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours"}
#: Formats with a default schema.
_SINGLE = {"string": "value STRING", "bytes": "value BINARY"}


def read_definitions(file: Path) -> list[Definition]:
    """Return all definitions of a file."""
    try:
        text = file.read_text()
    except OSError as error:
        raise BadDefinition(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadDefinition(f"{file}: the file is not UTF-8 text") from error
    documents = compose(file, text)
    if not documents:
        raise BadDefinition(f"{file}: no pipeline found; a definition begins with the key 'name'")
    return [_definition(file, document) for document in documents]


def trigger_of(text: str) -> Mapping[str, Any] | None:
    """Return the arguments of `DataStreamWriter.trigger` for an interval or `available_now`; None if
    invalid."""
    if text.lower().replace("-", "_") in ("available_now", "availablenow", "once"):
        return {"availableNow": True}
    found = _INTERVAL.fullmatch(text.lower())
    return {"processingTime": f"{found[1]} {_UNITS.get(found[2], found[2])}"} if found else None


def _definition(file: Path, node: yaml.Node) -> Definition:
    section = Section(file, node, "pipeline", _PIPELINE)
    name = section.required("name")
    if not NAME.fullmatch(name):
        section.fail(invalid_name(name), section.node("name"))
    if not section.has("source"):
        section.fail("pipeline needs the key 'source'")
    source = _source(section.section("source", _SOURCE))
    definition = Definition(
        name=name,
        file=file,
        source=source,
        sinks=_sinks(section),
        steps=tuple(_step(file, item) for item in section.items("steps")),
        checks=tuple(_check(Section(file, item, "checks", _CHECK)) for item in section.items("checks")),
        bootstrap_servers=section.text("bootstrap_servers"),
        dead_letter=section.text("dead_letter"),
        trigger=_trigger(section),
        checkpoint=section.text("checkpoint"),
        exactly_once=section.flag("exactly_once", True),
        config=section.pairs("config"),
    )
    _check_checks(section, definition)
    return definition


def _source(section: Section) -> Source:
    topics = section.texts("topic") + section.texts("topics")
    pattern = section.text("pattern")
    if topics and pattern:
        section.fail("source needs either topics or a pattern, not both", section.node("pattern"))
    options = section.pairs("options")
    starting = section.text("starting_offsets")
    if starting is not None:
        options["startingOffsets"] = starting
    if not topics and pattern is None:
        return Source(
            format=section.required("format"),
            schema=_schema(section, "schema"),
            path=section.text("path"),
            options=options,
        )
    value_format, schema = _format(section, "format", "schema")
    key_format, key_schema = _format(section, "key_format", "key_schema")
    options |= _registry(section)
    return Source(topics, pattern, value_format, schema, key_format, key_schema, options=options)


def _registry(section: Section) -> dict[str, str]:
    """Return the URL of the schema registry as an option of the formats."""
    url = section.text("registry") or section.pairs("options").get("schema.registry.url")
    return {} if url is None else {"schema.registry.url": url}


def _format(section: Section, key: str, schema_key: str) -> tuple[str | None, str | None]:
    """Return the format of records and its schema."""
    name = section.choice(key, FORMATS, "") or None
    schema = _schema(section, schema_key)
    if name is None:
        if schema is not None:
            section.fail(
                f"source.{schema_key} needs source.{key}: {', '.join(FORMATS)}", section.node(schema_key)
            )
        return None, None
    schema = schema or _SINGLE.get(name)
    if schema is None and not (name in REGISTRY_FORMATS and _registry(section)):
        section.fail(f"source.{key} {name} needs source.{schema_key}, such as 'id LONG, name STRING'")
    return ("kafka" if name == "string" else name), schema


def _schema(section: Section, key: str) -> str | None:
    """Return columns given as `id LONG, name STRING` or as a mapping of names to types."""
    if section.has(key) and isinstance(section.node(key), yaml.MappingNode):
        return ", ".join(f"`{name}` {kind}" for name, kind in section.pairs(key).items())
    return section.text(key)


def _sinks(section: Section) -> tuple[Sink, ...]:
    if section.has("sink") == section.has("sinks"):
        section.fail("pipeline needs exactly one of the keys 'sink' and 'sinks'")
    if section.has("sink"):
        return (_sink(section.section("sink", _SINK)),)
    sinks = tuple(_sink(Section(section.file, item, "sinks", _SINK)) for item in section.items("sinks"))
    if not sinks:
        section.fail("pipeline.sinks is empty", section.node("sinks"))
    return sinks


def _sink(section: Section) -> Sink:
    topic = section.text("topic")
    if topic is None:
        name: str | None = section.required("format")
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
        options=section.pairs("options") | _registry(section),
    )


def _step(file: Path, node: yaml.Node) -> Step:
    section = Section(file, node, "steps", STEPS)
    kinds = [kind for kind in STEPS if section.has(kind)]
    if len(kinds) != 1:
        section.fail(f"a step needs exactly one of the keys {', '.join(STEPS)}, not {len(kinds)}")
    kind = kinds[0]
    if kind == "check":
        return Step(kind, check=_check(section.section("check", _CHECK)), line=section.line)
    if kind == "watermark":
        watermark = section.section("watermark", ("column", "delay"))
        arguments = (watermark.required("column"), watermark.required("delay"))
        return Step(kind, arguments, line=section.line)
    if kind == "select":
        return Step(kind, section.texts(kind), line=section.line)
    return Step(kind, (section.required(kind),), line=section.line)


def _trigger(section: Section) -> Mapping[str, Any]:
    text = section.text("trigger")
    if text is None:
        return {"processingTime": "1 second"}
    trigger = trigger_of(text)
    if trigger is None:
        section.fail(
            f"'{text}' is not a trigger; use an interval such as '5 seconds', or available_now",
            section.node("trigger"),
        )
    return trigger


def _check(section: Section) -> Check:
    on_fail = cast(OnFail, section.choice("on_fail", ON_FAIL, "fail"))
    return Check(section.required("name"), section.required("expect"), on_fail, _at_most(section, on_fail))


def _at_most(section: Section, on_fail: OnFail) -> AtMost | None:
    text = section.text("at_most")
    if text is None:
        return None
    if on_fail == "fail":
        section.fail(
            "on_fail 'fail' stops at the first row; use at_most with drop, dead_letter or warn",
            section.node("at_most"),
        )
    limit = AtMost.parse(text)
    if limit is None:
        section.fail(
            f"'{text}' is neither a number of rows nor a percentage, such as 20 or 5%",
            section.node("at_most"),
        )
    return limit


def _check_checks(section: Section, definition: Definition) -> None:
    """Check that names of checks are unique, and that dead letters have a topic and a source of records."""
    checks = definition.all_checks
    names = [check.name for check in checks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        section.fail(f"two checks are named '{twice}'; failures are counted by name")
    without_topic = next((check for check in checks if check.on_fail == "dead_letter"), None)
    if without_topic is not None and definition.dead_letter is None:
        section.fail(
            f"the check '{without_topic.name}' needs the key 'dead_letter', the topic for failed rows"
        )
    if definition.dead_letter is not None and not definition.source.is_topic:
        section.fail("dead_letter needs a source that reads topics", section.node("dead_letter"))
