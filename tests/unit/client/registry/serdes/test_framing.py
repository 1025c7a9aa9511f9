from __future__ import annotations

import pytest

from moldau.client.registry.serdes.framing import (
    SchemaName,
    frame,
    guid_header,
    of_record,
    read_indexes,
    unframe,
    write_indexes,
)
from moldau.client.serdes import SerializationError

GUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("indexes", "data"),
    [((0,), b"\0"), ((1,), b"\x02\x02"), ((2, 1), b"\x04\x04\x02"), ((100,), b"\x02\xc8\x01")],
)
def test_message_indexes(indexes: tuple[int, ...], data: bytes) -> None:
    assert write_indexes(indexes) == data
    assert read_indexes(b"xx" + data + b"rest", 2) == (indexes, 2 + len(data))


def test_first_message_in_the_long_form_is_read() -> None:
    assert read_indexes(b"\x02\0", 0) == ((0,), 2)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x80", b"\xff\xff\xff\xff\x0f", b"\x01", b"\x02\xff\xff"])
def test_invalid_message_indexes(data: bytes) -> None:
    with pytest.raises(SerializationError):
        read_indexes(data, 0)


def test_frame_of_an_id() -> None:
    assert frame(258) == b"\0\0\0\1\2"
    assert frame(1, (0,)) == b"\0\0\0\0\1\0"
    assert unframe(b"\0\0\0\0\1\4\2\4data", with_indexes=True) == (SchemaName(id=1, indexes=(1, 2)), 8)


def test_header_takes_precedence_over_the_first_bytes() -> None:
    headers = [("__key_schema_id", frame(9)), ("__value_schema_id", guid_header(GUID))]
    assert of_record(b"data", headers, key=False) == (SchemaName(guid=GUID), b"data")
    assert of_record(b"data", headers, key=True) == (SchemaName(id=9), b"data")
    assert of_record(frame(7) + b"data", headers, key=False, use_headers=False) == (SchemaName(id=7), b"data")
    assert of_record(frame(7) + b"data", [("other", b"")], key=False) == (SchemaName(id=7), b"data")
