"""Fields, numbers and formats."""

from __future__ import annotations

import pytest

from moldau.console.pages.resets import parse_time
from moldau.console.web import formats
from moldau.console.web.call import accepts_json, paged
from moldau.console.web.forms import Form, InvalidField, confirm_name, parse_settings


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json", True),
        ("application/json, text/html;q=0.5", True),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_a_client_chooses_json_or_html(accept: str, expected: bool) -> None:
    assert accepts_json(accept) is expected


def test_fields_are_checked() -> None:
    form = Form({"name": " orders ", "count": "12", "on": "on", "empty": " "})
    assert form.text("name") == "orders"
    assert form.number("count", "Count", least=1) == 12
    assert form.number("missing", "Count", default=-1) == -1
    assert form.flag("on") and not form.flag("missing")
    for number in ("1.5", "x", "", "1e3", "9" * 25):
        with pytest.raises(InvalidField, match="whole number"):
            Form({"n": number}).number("n", "Count")
    with pytest.raises(InvalidField, match="at most 10"):
        Form({"n": "11"}).number("n", "Count", most=10)
    with pytest.raises(InvalidField, match="Name is empty"):
        form.text("empty", "Name")
    with pytest.raises(InvalidField, match="one of"):
        form.choice("name", "Type", ("a", "b"))


def test_settings_are_lines() -> None:
    assert parse_settings("a=1\r\n# comment\n\n b = x=y ") == {"a": "1", "b": "x=y"}
    with pytest.raises(InvalidField, match="name=value"):
        parse_settings("nonsense")


def test_times_are_numbers_or_dates() -> None:
    assert parse_time("1700000000000") == 1_700_000_000_000
    assert parse_time("1970-01-01T00:00:01") == 1000
    assert parse_time("1970-01-01T01:00:01+01:00") == 1000
    for text in ("", "yesterday", "-5"):
        with pytest.raises(InvalidField):
            parse_time(text)


def test_lists_are_paged() -> None:
    assert paged([1, 2, 3, 4, 5], 2, 2) == ([3, 4], 3)
    assert paged([1], 99, 2) == ([1], 1)
    assert paged([], 1, 2) == ([], 1)


def test_numbers_as_people_read_them() -> None:
    assert formats.count(1234567) == "1,234,567"
    assert [formats.size(each) for each in (None, 0, 1023, 1536, 5 << 30)] == [
        "–",
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 GiB",
    ]
    assert [formats.duration(each) for each in (None, 0, 0.2, 59, 61, 7300, 200_000)] == [
        "–",
        "0 s",
        "< 1 s",
        "59 s",
        "1 min",
        "2 h",
        "2 d",
    ]
    assert formats.time(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert formats.time(-1) == formats.time(1 << 62) == "–"


@pytest.mark.parametrize("fields", [{}, {"name": "order"}, {"name": "orders "}])
def test_a_deletion_needs_the_name(fields: dict[str, str]) -> None:
    confirm_name(Form({"name": "orders"}), "topic", "orders")
    with pytest.raises(InvalidField, match="does not match the topic"):
        confirm_name(Form(fields), "topic", "orders")
