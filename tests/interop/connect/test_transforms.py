"""Every transformation and predicate of Kafka Connect, compared with Kafka's own record by record."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.transforms.catalog import PREDICATES, TRANSFORMATIONS
from tests.interop.connect.data import Generator
from tests.interop.connect.oracle import ask_kafka, ask_moldau, asked_record, same

pytestmark = pytest.mark.interop

RECORDS_PER_CONFIGURATION = 40
_NO_DEFAULTS = {"replace.null.with.default": "false"}
_MANY = "a:{0},b:{0},c:{0},d:{0},e:{0},f:{0}"

#: Configurations by the class, without `$Key` and `$Value`.
CONFIGURATIONS: dict[str, list[dict[str, str]]] = {
    "Cast": [
        *(
            {"spec": _MANY.format(kind)}
            for kind in ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
        ),
        *({"spec": kind} for kind in ("int8", "int64", "float64", "boolean", "string")),
        {"spec": "a:int32, b:STRING", **_NO_DEFAULTS},
        {"spec": ""},
        {"spec": "a:bytes"},
        {"spec": "a:b:c"},
        {"spec": "int8,a:int8"},
        {"spec": "a:nothing"},
        {},
    ],
    "DropHeaders": [{"headers": "h"}, {"headers": "h,i"}, {"headers": ""}, {"headers": "h,h"}],
    "ExtractField": [
        {"field": "a"},
        {"field": "b", **_NO_DEFAULTS},
        {"field": "a.b", "field.syntax.version": "V2"},
        {"field": "`a`.c", "field.syntax.version": "v2"},
        {"field": "b.`a.b`.", "field.syntax.version": "V2", **_NO_DEFAULTS},
        {"field": "`a", "field.syntax.version": "V2"},
        {"field": "a", "field.syntax.version": "V3"},
        {},
    ],
    "Filter": [{}],
    "Flatten": [{}, {"delimiter": "_"}],
    "HeaderFrom": [
        {"fields": "a", "headers": "x", "operation": "move"},
        {"fields": "a,b", "headers": "x,y", "operation": "copy"},
        {"fields": "b,c", "headers": "h,h", "operation": "move", **_NO_DEFAULTS},
        {"fields": "a,b", "headers": "x", "operation": "copy"},
        {"fields": "", "headers": "x", "operation": "copy"},
        {"fields": "a", "headers": "x", "operation": "other"},
    ],
    "HoistField": [{"field": "wrapped"}, {}],
    "InsertField": [
        {"topic.field": "topic"},
        {"topic.field": "t!", "partition.field": "p?", "timestamp.field": "when"},
        {"offset.field": "o", "static.field": "s!", "static.value": "fixed"},
        {"timestamp.field": "when!", **_NO_DEFAULTS},
        {"topic.field": "a"},
        {},
    ],
    "InsertHeader": [
        {"header": "new", "value.literal": literal}
        for literal in (
            "text",
            "7",
            "1.5",
            "true",
            "null",
            "[1,2,300]",
            '{"a":1}',
            "2020-02-29",
            "12:30:00.000Z",
        )
    ],
    "MaskField": [
        {"fields": "a,b"},
        {"fields": "c,d,e", **_NO_DEFAULTS},
        {"fields": "a,b,c,d,e,f", "replacement": "123"},
        {"fields": "a,b,c", "replacement": "hidden"},
        {"fields": "a,b,c", "replacement": "3.7"},
        {"fields": "a", "replacement": ""},
        {"fields": ""},
    ],
    "RegexRouter": [
        {"regex": "orders-(.*)", "replacement": "all-$1"},
        {"regex": "(?<first>.*)-(?<second>.*)", "replacement": "${second}.${first}"},
        {"regex": r"\w+|orders", "replacement": r"\$$0"},
        {"regex": "(", "replacement": "x"},
        {"regex": "x"},
    ],
    "ReplaceField": [
        {"exclude": "a,b"},
        {"include": "a,c,d"},
        {"renames": "a:z,b:y"},
        {"exclude": "a", "include": "a,b", "renames": "b:x", **_NO_DEFAULTS},
        {"exclude": "b", "renames": "a:b"},
        {"exclude": "a", "renames": "a:b"},
        {"renames": "a"},
        {"exclude": "a,a"},
        {},
    ],
    "SetSchemaMetadata": [
        {"schema.name": "org.example.Other"},
        {"schema.version": "9"},
        {"schema.name": "n", "schema.version": "3", **_NO_DEFAULTS},
        {"schema.version": "x"},
        {},
    ],
    "TimestampConverter": [
        *(
            {"field": field, "target.type": target, "format": "yyyy-MM-dd"}
            for field in ("a", "b", "")
            for target in ("string", "unix", "Date", "Time", "Timestamp")
        ),
        {
            "field": "a",
            "target.type": "string",
            "format": "EEE, dd MMM yyyy hh:mm:ss.SSS a z",
            **_NO_DEFAULTS,
        },
        {"field": "a", "target.type": "string", "format": "yy'T'DDD''HH:mm:ssXXX G k K u w W F"},
        *(
            {"field": "a", "target.type": target, "unix.precision": precision}
            for target in ("unix", "Timestamp")
            for precision in ("seconds", "microseconds", "nanoseconds")
        ),
        {"field": "a", "target.type": "string"},
        {"field": "a", "target.type": "text"},
        {"field": "a", "target.type": "string", "format": "bogus"},
    ],
    "TimestampRouter": [
        {},
        {"topic.format": "${timestamp}/${topic}$1", "timestamp.format": "yyyy-MM-dd'T'HH"},
    ],
    "ValueToKey": [{"fields": "a"}, {"fields": "b,a", **_NO_DEFAULTS}, {"fields": ""}, {"fields": "a,a"}],
}
PREDICATE_CONFIGURATIONS: dict[str, list[dict[str, str]]] = {
    "HasHeaderKey": [{"name": "h"}, {"name": ""}, {}],
    "RecordIsTombstone": [{}],
    "TopicNameMatches": [{"pattern": "orders.*"}, {"pattern": "order"}, {"pattern": ""}, {"pattern": "["}],
}


def _cases(kind: str, classes: Any, configurations: dict[str, list[dict[str, str]]]) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "class": name, "config": config}
        for name in classes
        for config in configurations[name.rpartition(".")[2].partition("$")[0]]
    ]


def test_results_equal_those_of_kafka() -> None:
    generator = Generator(17)
    cases = _cases("transform", TRANSFORMATIONS, CONFIGURATIONS)
    cases += _cases("predicate", PREDICATES, PREDICATE_CONFIGURATIONS)
    records: list[list[ConnectRecord]] = [
        [generator.record() for _ in range(RECORDS_PER_CONFIGURATION)] for _ in cases
    ]
    asked = [
        {**case, "records": [asked_record(record) for record in of_case]}
        for case, of_case in zip(cases, records, strict=True)
    ]
    differences = []
    compared = 0
    for case, of_case, kafka in zip(cases, records, ask_kafka(asked), strict=True):
        ours = ask_moldau(case, of_case, None, None)
        for index, (left, right) in enumerate(_pairs(kafka, ours)):
            compared += 1
            if not same(left, right):
                differences.append((case["class"], case["config"], asked_record(of_case[index]), left, right))
    shown = "\n\n".join("\n  ".join(map(str, difference)) for difference in differences[:8])
    assert not differences, f"{len(differences)} of {compared} results differ:\n{shown}"
    assert compared > 5000


def _pairs(kafka: Any, ours: Any) -> list[tuple[Any, Any]]:
    """A configuration that is refused has one result, others one per record."""
    if isinstance(kafka, list) and isinstance(ours, list):
        return list(zip(kafka, ours, strict=True))
    return [(kafka, ours)]
