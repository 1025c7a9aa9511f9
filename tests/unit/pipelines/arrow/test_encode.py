"""Arrow columns encoded as record batches, read back by the protocol's reader."""

from __future__ import annotations

import itertools
import random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.base.errors import KafkaError
from moldau.client.partitioners import partition_for_key
from moldau.pipelines.arrow.encode import Encoder, destinations
from moldau.protocol.records import Record, iter_records, read_batch_header

NOW = 1_700_000_000_000
COUNTS = {"a": 1, "b": 5, "c": 13}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]


class Row(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    partition: int | None
    microseconds: int | None


def encode(rows: Any, topic: str | None = None, **options: Any) -> dict[tuple[str, int], list[Record]]:
    """The records of each partition, in order, from valid batches."""
    encoder = Encoder(**options)
    found: dict[tuple[str, int], list[Record]] = {}
    for partition, batch in encoder.encode(rows, destinations(rows, topic), COUNTS, NOW):
        header = read_batch_header(batch)
        records = list(iter_records(batch, header))
        assert header.size_in_bytes == len(batch) and header.base_offset == 0
        assert [record.offset for record in records] == list(range(len(records)))
        assert header.last_offset_delta == len(records) - 1 == header.records_count - 1
        assert header.base_timestamp == records[0].timestamp
        assert header.max_timestamp == max(record.timestamp for record in records)
        found.setdefault(tuple(partition), []).extend(records)
    return found


def table(rows: list[Row], *, key: Any, value: Any) -> Any:
    headers = [None if r.headers is None else [{"key": k, "value": v} for k, v in r.headers] for r in rows]
    return pa.record_batch(
        {
            "topic": pa.array([row.topic for row in rows], pa.string()),
            "key": pa.array([row.key for row in rows], pa.binary()).cast(key),
            "value": pa.array([row.value for row in rows], pa.binary()).cast(value),
            "headers": pa.array(headers, HEADERS),
            "partition": pa.array([row.partition for row in rows], pa.int32()),
            "timestamp": pa.array([row.microseconds for row in rows], pa.timestamp("us", "UTC")),
        }
    )


_optional_bytes = st.none() | st.binary(max_size=40)
_rows = st.lists(
    st.sampled_from(sorted(COUNTS)).flatmap(
        lambda topic: st.builds(
            Row,
            st.just(topic),
            _optional_bytes,
            _optional_bytes | st.binary(min_size=100, max_size=300),
            st.none() | st.lists(st.tuples(st.text(max_size=5), _optional_bytes), max_size=3),
            st.none() | st.integers(0, COUNTS[topic] - 1),
            st.none() | st.integers(0, 2**53),
        )
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(
    rows=_rows,
    skipped=st.integers(0, 5),
    key=st.sampled_from(BINARIES),
    value=st.sampled_from(BINARIES),
    batch_bytes=st.sampled_from([100, 500, 10_000]),
    codec=st.integers(0, 4),
)
def test_every_row_becomes_a_record(
    rows: list[Row], skipped: int, key: Any, value: Any, batch_bytes: int, codec: int
) -> None:
    columns = table(rows, key=key, value=value).slice(min(skipped, len(rows)))
    rows = rows[skipped:]
    found = encode(columns, batch_bytes=batch_bytes, codec=codec)
    wanted: dict[str, list[Any]] = {}
    for row in rows:
        stored = NOW if row.microseconds is None else row.microseconds // 1000
        wanted.setdefault(row.topic, []).append((row.key, row.value, list(row.headers or []), stored))
    for topic, expected in wanted.items():
        records = [record for (name, _), each in found.items() if name == topic for record in each]
        got = [(record.key, record.value, list(record.headers), record.timestamp) for record in records]
        assert sorted(got, key=repr) == sorted(expected, key=repr)
    assert sum(map(len, found.values())) == len(rows)


@given(rows=_rows)
@settings(max_examples=50, deadline=None)
def test_partition_column_comes_before_the_hash_of_the_key(rows: list[Row]) -> None:
    unique = [row._replace(value=b"%d" % number) for number, row in enumerate(rows)]
    places = {
        record.value: partition
        for (_, partition), records in encode(table(unique, key=pa.binary(), value=pa.binary())).items()
        for record in records
    }
    for row in unique:
        if row.partition is not None:
            assert places[row.value] == row.partition
        elif row.key is not None:
            assert places[row.value] == partition_for_key(row.key, COUNTS[row.topic])


def test_rows_of_a_partition_keep_their_order() -> None:
    randomness = random.Random(7)
    keys = [b"%d" % randomness.randrange(50) for _ in range(5000)]
    rows = pa.record_batch({"key": keys, "value": [b"%05d" % number for number in range(5000)]})
    for records in encode(rows, "c", batch_bytes=2000).values():
        values = [record.value for record in records]
        assert values == sorted(values)


def test_rows_without_a_key_change_partition_after_about_one_batch() -> None:
    rows = pa.record_batch({"value": [b"x" * 100] * 1000})
    encoder = Encoder(batch_bytes=10_000)
    batches = encoder.encode(rows, destinations(rows, "b"), COUNTS, NOW)
    assert {partition.partition for partition, _ in batches} == set(range(5))
    counts = [read_batch_header(batch).records_count for _, batch in batches]
    assert len(counts) <= 2 * sum(counts) * 112 / 10_000


def test_partition_for_rows_without_a_key_is_kept_between_calls() -> None:
    rows = pa.record_batch({"value": [b"x" * 100] * 10})
    encoder = Encoder(batch_bytes=10_000)
    places = [encoder.encode(rows, destinations(rows, "b"), COUNTS, NOW)[0][0].partition for _ in range(60)]
    assert set(places) == set(range(5))
    assert all((after - before) % 5 in (0, 1) for before, after in itertools.pairwise(places))


def test_batches_fill_the_limit_but_do_not_exceed_it() -> None:
    rows = pa.record_batch({"value": [b"x" * 100] * 1000 + [b"y" * 50_000]})
    batches = Encoder(batch_bytes=10_000).encode(rows, destinations(rows, "a"), COUNTS, NOW)
    sizes = [len(batch) for _, batch in batches]
    assert max(sizes[:-1]) <= 10_000 and sizes[-1] > 50_000
    assert all(size > 9_700 for size in sizes[:-2])


@pytest.mark.parametrize("kind", TEXTS + BINARIES + [pa.binary(3)])
def test_binary_and_string_columns_of_every_type(kind: Any) -> None:
    plain = pa.string() if kind in TEXTS else pa.binary()
    values = pa.array(["abc", None, "xyz"], plain).cast(kind)
    found = encode(pa.record_batch({"value": values, "key": values}), "a")[("a", 0)]
    assert [(record.key, record.value) for record in found] == [
        (b"abc", b"abc"),
        (None, None),
        (b"xyz", b"xyz"),
    ]


@pytest.mark.parametrize("unit,per_second", [("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
def test_timestamps_of_every_unit(unit: str, per_second: int) -> None:
    times = pa.array([1_600_000_000 * per_second, None], pa.timestamp(unit))
    found = encode(pa.record_batch({"value": [b"1", b"2"], "timestamp": times}), "a")[("a", 0)]
    assert [record.timestamp for record in found] == [1_600_000_000_000, NOW]


def test_column_of_nulls_is_null() -> None:
    rows = pa.record_batch({"value": pa.nulls(3), "key": pa.array([b"1", b"", None])})
    found = [record for records in encode(rows, "b").values() for record in records]
    assert sorted(((r.key, r.value) for r in found), key=repr) == [(None, None), (b"", None), (b"1", None)]


@pytest.mark.parametrize(
    "columns,topic,said",
    [
        ({"value": [1, 2]}, "a", "Column value must be binary or string, but is int64"),
        ({"value": [b"1"], "key": [1.5]}, "a", "Column key must be binary or string, but is double"),
        ({"key": [b"1"]}, "a", "There is no column value"),
        ({"value": [b"1"]}, None, "No topic"),
        ({"value": [b"1", b"2"], "topic": ["a", None]}, None, "topic is null"),
        ({"value": [b"1", b"2"], "partition": [4, 5]}, "b", "partition 5 of b, which has partitions 0 to 4"),
        ({"value": [b"1"], "partition": [-1]}, "b", "partition -1 of b"),
        ({"value": [b"1"], "partition": ["x"]}, "b", "Column partition must be int"),
        ({"value": [b"1"], "headers": [b"x"]}, "b", "Column headers must be array<struct"),
        ({"value": [b"1"], "timestamp": ["x"]}, "b", "Column timestamp must be timestamp"),
        ({"value": [b"1"], "timestamp": pa.array([-1], pa.timestamp("us"))}, "b", "before 1970"),
        (
            {"value": [b"1"], "headers": pa.array([[{"key": None, "value": b""}]], HEADERS)},
            "b",
            "header without a key",
        ),
    ],
)
def test_invalid_columns_raise_an_error_that_names_them(
    columns: dict[str, Any], topic: str | None, said: str
) -> None:
    with pytest.raises(KafkaError, match=said.replace("<", "[<]")):
        encode(pa.record_batch(columns), topic)


def test_columns_of_type_null_are_absent() -> None:
    rows = pa.record_batch(
        {name: pa.nulls(2) for name in ("key", "value", "partition", "headers", "timestamp")}
    )
    found = [record for records in encode(rows, "b").values() for record in records]
    assert [(r.key, r.value, list(r.headers), r.timestamp) for r in found] == 2 * [(None, None, [], NOW)]


def test_no_rows_yield_no_batches() -> None:
    assert encode(pa.record_batch({"value": pa.array([], pa.binary())}), "a") == {}
