"""The compiled encoder of flat Avro records writes what `fastavro` writes."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

import pyarrow as pa
import pytest

from moldau.client.registry.codecs.avro import AvroCodec
from moldau.pipelines.arrow.avro_encode import encode_flat, is_flat

TYPES: dict[str, tuple[Any, Any]] = {
    "yes": (pa.bool_(), "boolean"),
    "n": (pa.int32(), "int"),
    "id": (pa.int64(), "long"),
    "x": (pa.float64(), "double"),
    "name": (pa.string(), "string"),
    "raw": (pa.binary(), "bytes"),
    "at": (pa.timestamp("us", "UTC"), {"type": "long", "logicalType": "timestamp-millis"}),
    "day": (pa.date32(), {"type": "int", "logicalType": "date"}),
}
STRUCT = pa.struct([(name, kind) for name, (kind, _) in TYPES.items()])
CODEC = AvroCodec(
    json.dumps(
        {
            "type": "record",
            "name": "Flat",
            "fields": [{"name": name, "type": ["null", kind]} for name, (_, kind) in TYPES.items()],
        }
    )
)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def row(chance: random.Random) -> dict[str, Any] | None:
    if chance.random() < 0.1:
        return None
    values = {
        "yes": chance.random() < 0.5,
        "n": chance.choice([0, -1, 2**31 - 1, -(2**31)]),
        "id": chance.choice([63, 64, -64, -65, 8191, 8192, 2**63 - 1, -(2**63), chance.randrange(2**40)]),
        "x": chance.choice([0.0, -0.0, float("inf"), chance.uniform(-1e9, 1e9)]),
        "name": "".join(chance.choice("aä€😀") for _ in range(chance.randrange(100))),
        "raw": chance.randbytes(chance.randrange(5)),
        "at": EPOCH + datetime.timedelta(microseconds=chance.randrange(-(10**15), 10**16)),
        "day": EPOCH.date() + datetime.timedelta(days=chance.randrange(-1000, 40_000)),
    }
    return {name: None if chance.random() < 0.2 else value for name, value in values.items()}


@pytest.mark.parametrize("prefix", [b"", b"\0\0\0\0\7"])
def test_records_are_those_of_fastavro(prefix: bytes) -> None:
    chance = random.Random(3)
    rows = [row(chance) for _ in range(600)]
    # A part of a larger array, as Spark may send it.
    given = pa.array(rows, STRUCT).slice(50, 500)
    written = encode_flat(given, prefix)
    assert written is not None
    written.validate(full=True)
    expected = [None if one is None else prefix + CODEC.encode(one) for one in given.to_pylist()]
    assert written.to_pylist() == expected


def test_no_rows() -> None:
    written = encode_flat(pa.array([], STRUCT), b"p")
    assert written is not None
    assert written.to_pylist() == []


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.decimal128(4), pa.struct([("a", pa.int32())]), pa.time64("us")]
)
def test_other_columns_are_not_flat(kind: Any) -> None:
    assert is_flat(STRUCT)
    assert not is_flat(pa.struct([("id", pa.int64()), ("other", kind)]))
