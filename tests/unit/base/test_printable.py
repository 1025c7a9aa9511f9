"""Text of clients in logs."""

from __future__ import annotations

from moldau.base.printable import one_line


def test_ordinary_text_is_unchanged() -> None:
    assert one_line("CN=Jürgen\\, 北 (äöü)") == "CN=Jürgen\\, 北 (äöü)"


def test_the_end_of_a_line_is_escaped() -> None:
    assert one_line("a\nb\r\x1b[1m\x85\u2028") == r"a\nb\r\x1b[1m\x85\u2028"


def test_long_text_is_cut() -> None:
    assert one_line("a" * 3000, 10) == "a" * 10 + "… (3000 characters)"
