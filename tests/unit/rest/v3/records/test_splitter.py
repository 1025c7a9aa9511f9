"""The splitter finds the values of a stream, whatever the pieces in which it arrives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.http.errors import ApiError
from moldau.rest import request
from moldau.rest.formats import plain
from moldau.rest.v3.records import splitter
from moldau.rest.v3.records.splitter import JsonSplitter

_TEXT = st.text(st.characters(codec="utf-8"))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda children: st.lists(children) | st.dictionaries(_TEXT, children),
    max_leaves=10,
)
_OBJECTS = st.lists(st.dictionaries(_TEXT, _VALUES), max_size=5)


@given(_OBJECTS, st.sampled_from(["", " ", "\n", "\r\n\t"]), st.integers(1, 9), st.booleans())
def test_values_are_found_in_any_pieces(
    values: list[dict[str, Any]], between: str, size: int, ascii: bool
) -> None:
    text = between.join(json.dumps(each, ensure_ascii=ascii) for each in values).encode(
        "utf-8", "surrogatepass"
    )
    splitting = JsonSplitter(1_000_000)
    found: list[Any] = []
    for start in range(0, len(text), size):
        found += splitting.feed(text[start : start + size])
    splitting.finish()
    assert found == values


@pytest.mark.parametrize("text", [b"1", b"[1]", b'"a"', b"null", b"}", b"\xff"])
def test_only_objects_are_records(text: bytes) -> None:
    with pytest.raises(ApiError, match="not a JSON object"):
        list(JsonSplitter(100).feed(text))


def test_values_before_a_mistake_are_returned() -> None:
    values = JsonSplitter(100).feed(b'{"a":1} x')
    assert next(values) == {"a": 1}
    with pytest.raises(ApiError):
        next(values)


@pytest.mark.parametrize("text", [b"{", b'{"a', b'{"a":[}', b'{"a":"\\'])
def test_incomplete_values_are_refused_at_the_end(text: bytes) -> None:
    splitting = JsonSplitter(100)
    assert list(splitting.feed(text)) == []
    with pytest.raises(ApiError, match="ends within"):
        splitting.finish()


def test_the_size_of_a_value_is_bounded() -> None:
    splitting = JsonSplitter(50)
    assert len(list(splitting.feed(b'{"a":1}' * 100))) == 100
    with pytest.raises(ApiError, match="larger than 50 bytes"):
        list(splitting.feed(b'{"a":"' + b"x" * 60))


def test_a_value_that_is_not_json_does_not_end_the_stream() -> None:
    first, second, third = JsonSplitter(100).feed(b'{"a":tru}\n{"a":1}{"a":NaN}')
    assert (first.status, second, third.status) == (400, {"a": 1}, 400)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_each_byte_is_parsed_at_most_twice(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    """Values on one line are first taken for one value, all together."""
    text = b'{"a":1}' * 2000 + end
    parsed: list[int] = []

    def counting(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(data: Any) -> Any:
            parsed.append(len(data))
            return parse(data)

        return call

    monkeypatch.setattr(splitter, "load", counting(plain.load))
    monkeypatch.setattr(splitter, "parse", counting(request.parse))
    assert len(list(JsonSplitter(100_000).feed(text))) == 2000
    assert sum(parsed) <= 2 * len(text)
