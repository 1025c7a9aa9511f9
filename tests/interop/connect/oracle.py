"""Kafka's own transformations and converters (`java/ConnectOracle.java`), and ours, asked the same questions.

Schemas, values and records are written as JSON that names every type; maps have no order.
"""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from moldau.base.java_numbers import java_double
from moldau.pipelines.connect.converters.catalog import CONVERTERS, HEADER_CONVERTERS
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.logical import millis_of
from moldau.pipelines.connect.data.records import ConnectRecord, SinkRecord, SourceRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.transforms.catalog import PREDICATES, TRANSFORMATIONS
from tests.harness.apache.node import java_command
from tests.interop.java_oracle import jars

Json = Any

#: Failures without a rule behind them: a null pointer or a wrong cast in Java. Ours must fail, too.
UNINTENDED = {
    "java.lang.NullPointerException",
    "java.lang.ClassCastException",
    "java.lang.IllegalArgumentException",
    "java.lang.IndexOutOfBoundsException",
}
#: Messages whose end differs: ours do not quote the record, and Python words errors in its own way.
WORDED_DIFFERENTLY = ("Timestamp missing on record: ", "Invalid regex: ")
#: Python's dates end with the year 9999.
OUT_OF_RANGE = "ms since the epoch is outside the years 1 to 9999"


def ask_kafka(cases: Iterable[Json]) -> list[Json]:
    program = str(Path(__file__).parents[1] / "java" / "ConnectOracle.java")
    command = java_command(jars(), program)
    command.insert(1, "-Duser.timezone=UTC")
    text = "".join(f"{json.dumps(case)}\n" for case in cases)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    lines = (line.split("\t", 1) for line in done.stdout.splitlines() if line.startswith("answer\t"))
    return [unordered(json.loads(answer)) for _, answer in lines]


def ask_moldau(case: Json, record_of: list[ConnectRecord], schema: Schema | None, value: Any) -> Json:
    """Return our answer to a case whose records, schema and value are given as objects."""
    try:
        return unordered(_answer(case, record_of, schema, value))
    except ConnectError as failure:
        return error(failure)


def _answer(case: Json, records: list[ConnectRecord], schema: Schema | None, value: Any) -> Json:
    name, config = case["class"], case["config"]
    if case["kind"] == "transform":
        transformation = TRANSFORMATIONS[name]()
        transformation.configure(config)
        return [_attempt(transformation.apply, record) for record in records]
    if case["kind"] == "predicate":
        predicate = PREDICATES[name]()
        predicate.configure(config)
        return [predicate.test(record) for record in records]
    module, _, cls = (CONVERTERS | HEADER_CONVERTERS)[name].partition(":")
    converter = getattr(import_module(module), cls)()
    converter.configure(config, False)
    if case["kind"] in ("to_connect", "to_header"):
        data = None if case["data"] is None else b64decode(case["data"])
        read = converter.to_connect if case["kind"] == "to_connect" else converter.to_connect_header
        found = read("topic", "header", data)
        return [shown_schema(found.schema), shown(found.value, found.schema)]
    write = converter.from_connect if case["kind"] == "from_connect" else converter.from_connect_header
    data = write("topic", "header", schema, value)
    return None if data is None else b64encode(data).decode()


def _attempt(apply: Any, record: ConnectRecord) -> Json:
    try:
        return shown_record(apply(record))
    except ConnectError as failure:
        return error(failure)


def error(failure: ConnectError) -> Json:
    return {"error": failure.java_class, "message": str(failure)}


def same(kafka: Json, ours: Json) -> bool:
    """Compare the answers to one record; of an unintended failure only that there is one."""
    if isinstance(ours, dict) and OUT_OF_RANGE in ours.get("message", ""):
        return True
    if not (isinstance(kafka, dict) and isinstance(ours, dict) and "error" in kafka and "error" in ours):
        return bool(kafka == ours)
    if kafka["error"] in UNINTENDED:
        return True
    if kafka["message"].startswith("Invalid value java.lang."):
        return bool(kafka["error"] == ours["error"])
    left, right = _without_widths(kafka["message"]), ours["message"]
    for common in WORDED_DIFFERENTLY:
        left, right = (text[: text.find(common)] if common in text else text for text in (left, right))
    return bool(kafka["error"] == ours["error"] and left == right)


def _without_widths(message: str) -> str:
    """A number of Python has no class by its width, so messages name the widest."""
    return re.sub(r"java\.lang\.(Byte|Short|Integer)", "java.lang.Long", message).replace(
        "java.lang.Float", "java.lang.Double"
    )


def shown_record(record: ConnectRecord | None) -> Json:
    if record is None:
        return None
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key_schema": shown_schema(record.key_schema),
        "key": shown(record.key, record.key_schema),
        "value_schema": shown_schema(record.value_schema),
        "value": shown(record.value, record.value_schema),
        "headers": [
            [one.key, shown_schema(one.schema), shown(one.value, one.schema)] for one in record.headers
        ],
    }


def asked_record(record: ConnectRecord) -> Json:
    """Return a record as the Java program reads it."""
    offset = record.offset if isinstance(record, SinkRecord) else 0
    return {"source": isinstance(record, SourceRecord), "offset": offset, **shown_record(record)}


def shown_schema(schema: Schema | None) -> Json:
    if schema is None:
        return None
    node: dict[str, Json] = {"type": schema.type.name, "optional": schema.optional}
    if schema.type in (Type.ARRAY, Type.MAP):
        node["values"] = shown_schema(schema.value_schema)
    if schema.type is Type.MAP:
        node["keys"] = shown_schema(schema.key_schema)
    if schema.type is Type.STRUCT:
        node["fields"] = [[field.name, shown_schema(field.schema)] for field in schema.fields]
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            node[name] = getattr(schema, name)
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = shown(schema.default, schema)
    return node


def shown(value: Any, schema: Schema | None) -> Json:
    if value is None:
        return None
    if isinstance(value, bool):
        return {"boolean": value}
    if isinstance(value, float):
        return {"float": java_double(float(value))}
    if isinstance(value, int):
        return {"integer": str(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, str):
        return {"string": value}
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"date": millis_of(value)}
    return _shown_composed(value, schema)


def _shown_composed(value: Any, schema: Schema | None) -> Json:
    if isinstance(value, Struct):
        pairs = zip(value.schema.fields, value.values, strict=True)
        return {"struct": [[field.name, shown(one, field.schema)] for field, one in pairs]}
    part = schema.value_schema if schema is not None and schema.type in (Type.ARRAY, Type.MAP) else None
    if isinstance(value, list):
        return {"list": [shown(entry, part) for entry in value]}
    key = schema.key_schema if schema is not None and schema.type is Type.MAP else None
    return {"map": [[shown(name, key), shown(entry, part)] for name, entry in value.items()]}


def unordered(node: Json) -> Json:
    """Sort the entries of maps, whose order in Java is that of hashes; show floats as we do."""
    if isinstance(node, list):
        return [unordered(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    found = {name: unordered(entry) for name, entry in node.items()}
    if list(found) == ["float"] and "x" in found["float"]:
        found["float"] = java_double(float.fromhex(found["float"]))
    if list(found) == ["map"]:
        found["map"] = sorted(found["map"], key=json.dumps)
    return found
