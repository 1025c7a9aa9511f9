"""The text of PostgreSQL's values."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.connect.connectors.cdc.types import TypeInfo, TypeMapping, TypeModes, parse_array


def convert(name: str, text: str, modifier: int = -1, **modes: Any) -> Any:
    mapped = TypeMapping({1: TypeInfo(name)}, TypeModes(**modes)).map(1, modifier)
    assert mapped is not None
    return mapped.convert(text)


def test_arrays() -> None:
    assert parse_array('{1,NULL,"NULL","a\\"b,c","\\\\"}', str) == ["1", None, "NULL", 'a"b,c', "\\"]
    assert parse_array("{{1,2},{3,4}}", int) == [[1, 2], [3, 4]]
    assert parse_array("[0:1]={5,6}", int) == [5, 6]
    assert parse_array("{}", int) == []


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("interval", "P1DT-2H0.5S", 86_400_000_000 - 7_200_000_000 + 500_000),
        ("interval", "P1Y2M", round(14 * 365.25 / 12 * 86_400_000_000)),
        ("timestamp", "infinity", 9_223_371_331_200_000_000),
        ("timestamptz", "2024-01-01 01:30:00+05:30", "2023-12-31T20:00:00Z"),
        ("timetz", "01:00:00.5+02", "23:00:00.500000Z"),
        ("time", "24:00:00", 86_400_000_000),
        ("hstore", '"a"=>"1", "b\\"c"=>NULL', '{"a":"1","b\\"c":null}'),
        ("bool", "f", False),
    ],
)
def test_values(name: str, text: str, value: Any) -> None:
    assert convert(name, text) == value


def test_modes() -> None:
    assert convert("numeric", "1.50", decimal="string") == "1.50"
    assert convert("money", "$1,234.50", decimal="double") == 1234.5
    assert convert("bytea", "\\x00ff", binary="base64") == "AP8="
    assert TypeMapping({1: TypeInfo("point")}, TypeModes()).map(1, -1) is None
