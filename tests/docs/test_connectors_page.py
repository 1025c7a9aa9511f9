"""The tables of settings in docs/CONNECTORS.md are current."""

from __future__ import annotations

from tools.connectors import PAGE, documented, known, with_tables


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run: python -m tools.connectors"


def test_the_documented_connectors_exist() -> None:
    assert documented(PAGE.read_text()) <= known()
