"""The compiled decoder of flat Avro records gives what `fastavro` gives, for good and for damaged bytes."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from moldau.client.registry.codecs.avro import AvroCodec
from moldau.client.serdes import SerializationError
from moldau.pipelines.arrow import avro_kernel as kernel
from moldau.pipelines.arrow.avro import FlatAvro, Undecodable

SCHEMA = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "n", "type": "int"},
        {"name": "name", "type": "string"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "last", "type": ["double", "null"]},
        {"name": "x", "type": "double"},
        {"name": "f", "type": "float"},
        {"name": "yes", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 3}},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "home",
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [
                    {"name": "city", "type": ["null", "string"]},
                    {
                        "name": "at",
                        "type": [
                            "null",
                            {
                                "type": "record",
                                "name": "Point",
                                "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": "double"}],
                            },
                        ],
                    },
                    {"name": "zip", "type": "int"},
                ],
            },
        },
        {"name": "work", "type": ["Place", "null"]},
        {"name": "end", "type": "int"},
    ],
}
PLACE = pa.struct(
    [
        ("zip", pa.int32()),
        ("at", pa.struct([("y", pa.float64()), ("none", pa.int32())])),
        ("city", pa.string()),
    ]
)
COLUMNS = pa.struct(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("name", pa.string()),
        ("note", pa.string()),
        ("last", pa.float64()),
        ("x", pa.float64()),
        ("f", pa.float64()),
        ("yes", pa.bool_()),
        ("raw", pa.binary()),
        ("hash", pa.binary()),
        ("color", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("us", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("work", PLACE),
        ("home", PLACE),
        ("end", pa.int32()),
        ("absent", pa.string()),
    ]
)
CODEC = AvroCodec(json.dumps(SCHEMA))


def value(chance: random.Random) -> dict[str, Any]:
    def text() -> str:
        return "".join(chance.choice("aä€😀 ") for _ in range(chance.randrange(70)))

    def place() -> dict[str, Any]:
        point = chance.choice([None, {"x": 1.0, "y": chance.random()}])
        return {"city": chance.choice([None, text()]), "at": point, "zip": chance.randrange(99_999)}

    return {
        "home": place(),
        "work": chance.choice([None, place()]),
        "end": chance.randrange(100),
        "id": chance.choice([0, -1, 63, 64, -64, 2**63 - 1, -(2**63), chance.randrange(-(2**40), 2**40)]),
        "n": chance.choice([0, 2**31 - 1, -(2**31), chance.randrange(1000)]),
        "name": text(),
        "note": chance.choice([None, "", text()]),
        "last": chance.choice([None, 1.5, float("inf")]),
        "x": chance.uniform(-1e300, 1e300),
        "f": chance.randrange(1000) / 8,
        "yes": chance.random() < 0.5,
        "raw": chance.randbytes(chance.randrange(9)),
        "hash": chance.randbytes(3),
        "color": chance.choice(["RED", "BLUE"]),
        "at": chance.randrange(-(10**12), 4 * 10**12),
        "us": chance.choice([None, chance.randrange(10**15)]),
        "day": chance.randrange(-10_000, 40_000),
    }


def decode(records: list[bytes], schema: Any = SCHEMA, columns: Any = COLUMNS) -> tuple[Any, Any]:
    codec = AvroCodec(json.dumps(schema))
    flat = FlatAvro.of(codec.schema, columns, codec.named)
    assert flat is not None
    data = b"".join(records)
    ends = np.cumsum([len(one) for one in records], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    buffer = pa.py_buffer(data)
    return flat.decode(buffer.address, starts, ends)


def test_columns_are_those_of_fastavro() -> None:
    chance = random.Random(7)
    records = [CODEC.encode(value(chance)) for _ in range(500)]
    found, status = decode(records)
    found.validate(full=True)
    assert (status == kernel.GOOD).all()
    assert found.equals(pa.array([CODEC.decode(one) for one in records], COLUMNS))


def test_damaged_records_are_found_and_others_are_not_affected() -> None:
    chance = random.Random(11)
    records = []
    for _ in range(1500):
        record = bytearray(CODEC.encode(value(chance)))
        if chance.random() < 0.7:
            record = record[: chance.randrange(len(record) + 1)]
        if chance.random() < 0.3:
            record += chance.randbytes(chance.randrange(1, 4))
        records.append(bytes(record))
    found, status = decode(records)
    found.validate(full=True)
    for record, row, code in zip(records, found.to_pylist(), status, strict=True):
        try:
            expected = CODEC.decode(record)
        except SerializationError as error:
            if "out of range" in (error.message or ""):
                # A date that Arrow and Spark can have, but not Python.
                continue
            trailing = "unexpected bytes" in (error.message or "")
            assert code == (kernel.TRAILING if trailing else kernel.MALFORMED)
            assert row is None
        else:
            assert code == kernel.GOOD
            assert row == pa.array([expected], COLUMNS)[0].as_py()


@pytest.mark.parametrize(
    ("kind", "record"),
    [("string", b"\x04\xff\xfe"), ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02")],
)
def test_values_that_only_their_text_shows_to_be_wrong(kind: Any, record: bytes) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}
    with pytest.raises(Undecodable):
        decode([record], schema, pa.struct([("v", pa.string())]))


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        (["null", "string", "int"], pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, pa.decimal128(4)),
        ("long", pa.int32()),
        ("int", pa.string()),
        ({"type": "record", "name": "Inner", "fields": []}, pa.struct([])),
        (["null", "R"], pa.struct([("v", pa.struct([("v", pa.string())]))])),
        ({"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}, pa.string()),
    ],
)
def test_other_schemas_and_columns_are_not_flat(kind: Any, column: Any) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}
    codec = AvroCodec(json.dumps(schema))
    assert FlatAvro.of(codec.schema, pa.struct([("v", column)]), codec.named) is None


def record(name: str, *kinds: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{index}", "type": kind} for index, kind in enumerate(kinds)],
    }


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(record("R", *[["null", "R"]] * 12), id="a record of itself"),
        pytest.param(record("R", record("S", *["R", "S"] * 6), *["S"] * 12), id="two records of each other"),
        pytest.param(
            record("A", record("B", record("C", record("D", *["int"] * 50), *["D"] * 50), *["C"] * 50), "B"),
            id="records used many times",
        ),
        pytest.param(record("R", *["int"] * 1_001), id="too many fields"),
    ],
)
def test_schemas_of_too_many_lines_are_not_flat(schema: Any) -> None:
    codec = AvroCodec(json.dumps(schema))
    started = time.process_time()
    assert FlatAvro.of(codec.schema, pa.struct([("f0", pa.int32())]), codec.named) is None
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**63 // 1000 + 1, -(2**63 // 1000) - 1])
def test_timestamp_that_microseconds_cannot_have_is_not_decoded(number: int) -> None:
    plain = AvroCodec(json.dumps(record("R", "long")))
    schema = record("R", {"type": "long", "logicalType": "timestamp-millis"})
    columns = pa.struct([("f0", pa.timestamp("us"))])
    records = [plain.encode({"f0": 0}), plain.encode({"f0": number})]
    with pytest.raises(Undecodable):
        decode(records, schema, columns)
    # Bytes after the record make it invalid, so its number does not count.
    found, status = decode([records[0], records[1] + b"x"], schema, columns)
    assert found.is_valid().to_pylist() == [True, False]
    assert status.tolist() == [kernel.GOOD, kernel.TRAILING]


def test_timestamps_at_the_limits_of_microseconds_are_decoded() -> None:
    plain = AvroCodec(json.dumps(record("R", "long")))
    schema = record("R", {"type": "long", "logicalType": "timestamp-millis"})
    numbers = [2**63 // 1000, -(2**63 // 1000)]
    found, _ = decode(
        [plain.encode({"f0": number}) for number in numbers], schema, pa.struct([("f0", pa.timestamp("us"))])
    )
    assert found.field(0).cast(pa.int64()).to_pylist() == [number * 1000 for number in numbers]
