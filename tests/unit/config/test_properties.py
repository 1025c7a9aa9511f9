"""Java's properties files; `tests/interop` compares with Java itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.config.properties import PropertiesError, format_properties, load_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1", {"a": "1"}),
        (" a : 1 ", {"a": "1 "}),
        ("a 1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("# no\n! no\n\n  \na=1", {"a": "1"}),
        ("a==b", {"a": "=b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\:b:c:d", {"a:b": "c:d"}),
        ("a\\ b = c", {"a b": "c"}),
        ("a=one,\\\n   two,\\\n\tthree", {"a": "one,two,three"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=one\\", {"a": "one"}),
        ("#c\\\nb=2", {"b": "2"}),
        ("\\\n#c\nb=2", {"b": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=\\t\\n\\r\\f\\z", {"a": "\t\n\r\fz"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("=x", {"": "x"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
    ],
)
def test_properties_are_parsed_as_in_java(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "ok=1\na=\\u"])
def test_invalid_unicode_escape_names_the_line(text: str) -> None:
    with pytest.raises(PropertiesError, match=f"line {text.count(chr(10)) + 1}: "):
        parse_properties(text)


def test_files_are_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "x.properties"
    path.write_bytes(b"a=gr\xf6\xdfer\n")
    assert load_properties(path) == {"a": "größer"}


def test_written_properties_have_the_bytes_of_java() -> None:
    text = format_properties({"node.id": "1", "a b": " c=d:e#f!\\", "é": "😀\t"}, "", 1_794_755_884_000)
    assert text == (
        "#\n#Sun Nov 15 15:18:04 UTC 2026\n"
        "node.id=1\na\\ b=\\ c\\=d\\:e\\#f\\!\\\\\n\\u00E9=\\uD83D\\uDE00\\t\n"
    )


@given(st.dictionaries(st.text(st.characters(codec="utf-16")), st.text(st.characters(codec="utf-16"))))
def test_written_properties_are_read_unchanged(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties, "note", 0)) == properties
