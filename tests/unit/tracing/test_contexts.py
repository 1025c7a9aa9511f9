"""Trace contexts in the headers of records, and how much of a request is read for them."""

from __future__ import annotations

import pytest

from moldau.protocol.compression import CODEC_NAMES, NONE, ZSTD
from moldau.protocol.records import Record, build_batch
from moldau.tracing.contexts import TraceContext, batch_contexts, parse_traceparent
from tests.harness.wire.batches import batch

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = TraceContext(int(TRACE, 16), int(SPAN, 16), sampled=True)


def traceparent(span: int, *, sampled: bool = True) -> bytes:
    return f"00-{TRACE}-{span:016x}-{int(sampled):02x}".encode()


def context(span: int, *, sampled: bool = True) -> TraceContext:
    return TraceContext(int(TRACE, 16), span, sampled)


def records(*spans: int, value: bytes = b"v") -> list[Record]:
    return [
        Record(number, 0, None, value, [("other", None), ("traceparent", traceparent(span))])
        for number, span in enumerate(spans)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", PARENT),
        (f"00-{TRACE}-{SPAN}-00", PARENT._replace(sampled=False)),
        (f"00-{TRACE}-{SPAN}-03", PARENT),
        (f"cc-{TRACE}-{SPAN}-01-later", PARENT),
        (f"00-{TRACE}-{SPAN}-01-later", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
        ("", None),
        ("\xff", None),
    ],
)
def test_traceparent_is_read_as_w3c_says(text: str, expected: TraceContext | None) -> None:
    assert parse_traceparent(text.encode("latin-1")) == expected


@pytest.mark.parametrize("codec", range(len(CODEC_NAMES)), ids=CODEC_NAMES)
def test_contexts_are_found_in_batches_of_every_codec(codec: int) -> None:
    built = build_batch(records(1, 2, 1), codec=codec)
    assert batch_contexts([built]) == [context(1), context(2)]


def test_records_without_a_valid_context_are_skipped() -> None:
    found = [
        Record(0, 0, b"k", b"v"),
        Record(1, 0, b"k", b"v", [("traceparent", None)]),
        Record(2, 0, b"k", b"v", [("traceparent", b"\xff\x00")]),
        Record(3, 0, b"k", b"v", [("traceparent", traceparent(4, sampled=False))]),
    ]
    assert batch_contexts([build_batch(found)]) == [context(4, sampled=False)]


def test_a_bounded_number_of_records_and_batches_is_read() -> None:
    assert len(batch_contexts([build_batch(records(*range(1, 100)))])) == 32
    assert len(batch_contexts(build_batch(records(span)) for span in range(1, 100))) == 8


def test_only_the_beginning_of_a_large_batch_is_read() -> None:
    large = records(1, 2, 3, value=bytes(200_000))
    assert batch_contexts([build_batch(large, codec=NONE)]) == [context(1)]
    # A compressed batch is not decompressed beyond the limit.
    assert batch_contexts([build_batch(large, codec=ZSTD), build_batch(records(5))]) == [context(5)]


def test_the_limit_holds_for_all_batches_together() -> None:
    half = [build_batch(records(span, value=bytes(140_000)), codec=ZSTD) for span in (1, 2, 3)]
    assert batch_contexts(half) == [context(1)]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"short",
        batch(magic=1),
        batch(count=1_000_000),
        batch(count=-5),
        batch(payload=b"\x80" * 40),
        batch(payload=b"\x02"),
        batch(codec=ZSTD, attributes=1),
        batch(attributes=7),
        batch(attributes=0x20),
    ],
    ids=[
        "empty",
        "short",
        "magic",
        "count",
        "negative",
        "varint",
        "cut",
        "codec",
        "unknown codec",
        "control",
    ],
)
def test_damaged_batches_and_control_batches_have_no_context(damaged: bytes) -> None:
    assert batch_contexts([damaged, build_batch(records(9))]) == [context(9)]
