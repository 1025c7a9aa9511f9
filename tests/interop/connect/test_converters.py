"""Kafka's converters, compared with Kafka's own byte by byte and value by value."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from moldau.pipelines.connect.converters.json.converter import JsonConverter
from moldau.pipelines.connect.data import schema as schemas
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import Schema
from tests.interop.connect.data import Generator
from tests.interop.connect.oracle import ask_kafka, ask_moldau, same, shown, shown_schema

pytestmark = pytest.mark.interop

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
OTHERS = [
    f"org.apache.kafka.connect.converters.{name}Converter"
    for name in ("ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double")
]
JSON_CONFIGURATIONS: list[dict[str, str]] = [
    {},
    {"schemas.enable": "false"},
    {"decimal.format": "numeric"},
    {"replace.null.with.default": "false"},
    {"schemas.enable": "false", "decimal.format": "NUMERIC", "replace.null.with.default": "false"},
]
_CONTENT = (
    '{"type":"struct","fields":[{"type":"int32","field":"a"},{"type":"string","optional":true,"field":"b"}]}'
)

#: Texts that are not, or hardly, JSON, and envelopes that are wrong.
JSON_TEXTS = [
    *(
        "",
        " ",
        "null",
        "true",
        "1",
        "-0",
        "007",
        "[010, -01]",
        "1.50",
        "1e400",
        "123456789012345678901234567890",
    ),
    *(
        "NaN",
        "Infinity",
        "{",
        "[1,",
        "[1,]",
        '{"a":1}x',
        "1 2",
        "tru",
        "'a'",
        "{a:1}",
        '"\\u00e9"',
    ),
    *('{"a":1,"a":2}', "\ufeff1", "[[[[]]]]", '"a\tb"', "01.5", '{"a":00}', "1.", ".5", "+1", "/* c */ 1"),
    *('{"schema":null,"payload":[1,2.5,"x",null,{"a":true}]}', '{"schema":{},"payload":1}', '{"payload":1}'),
    '{"schema":{"type":"int8"},"payload":1,"more":2}',
    '{"schema":{"type":"nothing"},"payload":1}',
    '{"schema":"int8","payload":1}',
    '{"payload":300,"schema":{"type":"int8"}}',
    '{"schema":{"type":"int8","optional":true,"default":5},"payload":null}',
    '{"schema":{"type":"int8","default":"x"},"payload":"7"}',
    '{"schema":{"type":"string","default":5},"payload":"7"}',
    '{"schema":{"type":"int8"},"payload":null}',
    '{"schema":{"type":"array"},"payload":[]}',
    '{"schema":{"type":"array","items":{"type":"int32"}},"payload":{"a":1,"b":2}}',
    '{"schema":{"type":"map","keys":{"type":"string"}},"payload":{}}',
    '{"schema":{"type":"map","keys":{"type":"string"},"values":{"type":"int8"}},"payload":[]}',
    '{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":{"1":2}}',
    '{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":[[1,2],[3,4]]}',
    '{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":[[1,2,3]]}',
    '{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":[1]}',
    '{"schema":{"type":"struct"},"payload":{}}',
    '{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":{}}',
    '{"schema":{"type":"struct","fields":[{"type":"int8","field":"a"}]},"payload":{"b":1}}',
    '{"schema":{"type":"struct","fields":[{"type":"string","field":"a"}]},"payload":{"a":1}}',
    '{"schema":{"type":"struct","fields":[{"type":"int8","field":"a"}]},"payload":[]}',
    '{"schema":{"type":"bytes"},"payload":"?"}',
    '{"schema":{"type":"bytes"},"payload":"YWJj"}',
    '{"schema":{"type":"int32","parameters":{"a":1}},"payload":1}',
    '{"schema":{"type":"int32","version":1.5,"name":7,"doc":[]},"payload":1}',
    *(
        f'{{"schema":{{"type":"{kind}","name":"org.apache.kafka.connect.data.{name}","version":1'
        f',"parameters":{{"scale":"2"}}}},"payload":{payload}}}'
        for kind, name in (("bytes", "Decimal"), ("int32", "Date"), ("int32", "Time"), ("int64", "Timestamp"))
        for payload in ("1", "1.2500", '"AQI="', '""', '"x"', "true", "[]", "-5", "99999999999")
    ),
]
HEADER_TEXTS = [
    *(
        "",
        " ",
        "a",
        "1",
        "-1",
        "+5",
        "127",
        "128",
        "-32769",
        "2147483648",
        "9223372036854775808",
        "1.0",
        "1.5",
    ),
    *(
        "1e3",
        "1e-3",
        "3.4e39",
        "1e400",
        "0x10",
        "1_000",
        ".5",
        "5.",
        "--1",
        "true",
        "false",
        "TRUE",
        "null",
        "nullx",
    ),
    *(
        "true}",
        "[]",
        "{}",
        "[1]",
        "[1,2,300]",
        "[1,1.5]",
        "[1,null]",
        "[null]",
        '[1,"a"]',
        '["a","b"]',
        "[a]",
        "[1,",
    ),
    *(
        "[,1]",
        "[1,]",
        "[1 2]",
        "{1:2}",
        '{"a":1}',
        '{"a":1,"b":2.5}',
        '{"a":null}',
        '{"a":[1,2],"b":[3]}',
        "{a:1}",
    ),
    *(
        '{"a"}',
        '{"a":}',
        "{:1}",
        '{"a":1',
        '{"a":1,}',
        '{"a":1 "b":2}',
        "{null:1}",
        '"quoted"',
        '"a',
        "a,b",
        "a:b",
    ),
    *(
        "2020-02-29",
        "2020-13-45",
        "20200229",
        "12:34:56.789Z",
        "2020-02-29T12:34:56.789Z",
        "2020-02-29T12:34:56Z",
    ),
    *(
        '["2020-02-29","12:34:56.789Z"]',
        "[2020-02-29]",
        "[12:34:56.789Z]",
        "a\\:b",
        '["a\\"b"]',
        '{"a\\:b":1}',
    ),
    *(
        "[true,false]",
        "[[1],[2]]",
        '[{"a":1}]',
        "[1,[2]]",
        " 5 ",
        " [ 1 , 2 ] ",
        '{ "a" : 1 }',
        "ünï",
        "{1:2,3:400}",
    ),
]

Case = tuple[dict[str, Any], Schema | None, Any]


def _written(name: str, config: dict[str, str], schema: Schema | None, value: Any, kind: str) -> Case:
    shown_case = {"schema": shown_schema(schema), "value": shown(value, schema)}
    return {"kind": kind, "class": name, "config": config, **shown_case}, schema, value


def _read(name: str, config: dict[str, str], data: bytes | None, kind: str = "to_connect") -> Case:
    encoded = None if data is None else b64encode(data).decode()
    return {"kind": kind, "class": name, "config": config, "data": encoded}, None, None


def _compare(cases: list[Case], least: int) -> None:
    differences = []
    for (case, schema, value), kafka in zip(cases, ask_kafka(case for case, _, _ in cases), strict=True):
        ours = ask_moldau(case, [], schema, value)
        if not same(kafka, ours):
            differences.append((case, kafka, ours))
    shown_differences = "\n\n".join("\n  ".join(map(str, one)) for one in differences[:8])
    assert not differences, f"{len(differences)} of {len(cases)} results differ:\n{shown_differences}"
    assert len(cases) > least


def test_json_is_written_as_by_kafka() -> None:
    generator = Generator(23)
    cases = []
    for config in JSON_CONFIGURATIONS:
        for _ in range(80):
            schema = generator.schema()
            cases.append(
                _written(JSON, config, schema, generator.value(schema, one_entry=True), "from_connect")
            )
        for _ in range(30):
            cases.append(_written(JSON, config, None, generator.schemaless(one_entry=True), "from_connect"))
        cases.append(_written(JSON, config, schemas.STRING, None, "from_connect"))
        cases.append(_written(JSON, config, schemas.OPTIONAL_STRING, None, "from_connect"))
    _compare(cases, 500)


def test_json_is_read_as_by_kafka() -> None:
    generator = Generator(29)
    cases = []
    for config in JSON_CONFIGURATIONS:
        converter = JsonConverter()
        converter.configure(config)
        cases += [_read(JSON, config, text.encode("utf-8", "surrogatepass")) for text in JSON_TEXTS]
        for _ in range(80):
            schema = generator.schema()
            try:
                data = converter.from_connect("topic", (), schema, generator.value(schema))
            except ConnectError:
                continue
            cases.append(_read(JSON, config, data))
            cases.append(_read(JSON, config, _with_other_payload(generator, data)))
    cases += [
        _read(JSON, {"schema.content": _CONTENT}, text.encode())
        for text in ('{"a":1}', '{"a":1,"b":"x","c":2}', "[]", '{"b":1}', "null", "{")
    ]
    cases += [_read(JSON, {"schema.content": text}, b"{}") for text in ("{", "1", "")]
    cases += [_read(JSON, {"decimal.format": "other"}, b"1"), _read(JSON, {}, None), _read(JSON, {}, b"\xff")]
    _compare(cases, 900)


def _with_other_payload(generator: Generator, data: bytes | None) -> bytes | None:
    """Replace the payload of an envelope by JSON of other types."""
    if data is None or not data.startswith(b'{"schema"'):
        return data
    payload = generator.random.choice(
        [None, True, 5, -7.25, "text", [], [1], {}, {"a": 1, "b": "x", "c": None}]
    )
    return json.dumps({**json.loads(data), "payload": payload}).encode()


def test_text_bytes_and_numbers_are_converted_as_by_kafka() -> None:
    generator = Generator(31)
    cases = []
    for name in (STRING, *OTHERS):
        for data in (
            None,
            b"",
            b"\x00",
            b"\x01",
            b"\x02",
            b"ab",
            b"\x00\x00\x80?",
            bytes(range(8)),
            b"\xc3\xa9",
        ):
            cases.append(_read(name, {}, data))
        for _ in range(30):
            schema = generator.primitive_schema().replace(default=None)
            value = generator.value(schema)
            if not (name == STRING and isinstance(value, bytes)):
                cases.append(_written(name, {}, schema, value, "from_connect"))
    for _ in range(60):
        schema = generator.schema()
        value = generator.value(schema, one_entry=True)
        if "bytes" not in json.dumps(shown(value, schema)):
            cases.append(_written(STRING, {}, schema, value, "from_connect"))
    _compare(cases, 300)


def test_headers_are_converted_as_by_kafka() -> None:
    generator = Generator(37)
    cases = [_read(HEADERS, {}, text.encode(), "to_header") for text in HEADER_TEXTS]
    tokens = ["[", "]", "{", "}", ",", ":", '"', "\\", "1", "2.5", "a", " ", "true", "null", "2020-01-02"]
    for _ in range(600):
        text = "".join(generator.random.choices(tokens, k=generator.random.randint(1, 9)))
        cases.append(_read(HEADERS, {}, text.encode(), "to_header"))
    for _ in range(150):
        schema = generator.schema()
        cases.append(_written(HEADERS, {}, schema, generator.value(schema, one_entry=True), "from_header"))
    _compare(cases, 800)
