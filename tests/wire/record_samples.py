"""The records that `tests/interop/java/RecordBytes.java` makes, and their printed form."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.protocol.records import Record


def java_records(count: int) -> list[Record]:
    return [
        Record(
            offset=index,
            timestamp=1_700_000_000_000 + index * 10,
            key=None if index % 3 == 0 else f"key-{index}".encode(),
            value=None if index % 5 == 0 else f"value-{index}-".encode() * (index % 50),
            headers=[("h", str(index).encode()), ("null", None)] if index % 7 == 0 else [],
        )
        for index in range(count)
    ]


def describe(records: Iterable[Record]) -> str:
    return "".join(_describe(record) + ";" for record in records)


def _describe(record: Record) -> str:
    parts = [str(record.offset), str(record.timestamp), _hex(record.key), _hex(record.value)]
    return ",".join(parts + [f"{name}={_hex(value)}" for name, value in record.headers])


def _hex(value: bytes | None) -> str:
    return "null" if value is None else value.hex()
