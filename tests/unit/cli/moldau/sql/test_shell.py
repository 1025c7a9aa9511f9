"""Completion at the prompt, and complete statements."""

from __future__ import annotations

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from moldau.cli.moldau.sql.shell import SqlCompleter, ends, is_whole
from tests.unit.pipelines.sql.example_catalog import catalog


def completions(text: str) -> list[str]:
    completer = SqlCompleter(catalog)
    return [one.text for one in completer.get_completions(Document(text), CompleteEvent())]


def test_keywords_sources_and_columns_are_completed() -> None:
    assert "orders" in completions("SELECT * FROM ord")
    assert "customer" in completions("SELECT cust")
    assert completions("SEL") == ["SELECT"]
    assert completions("sel") == ["select"]
    assert completions("") == []
    assert [
        one.text for one in SqlCompleter(lambda: None).get_completions(Document("EMI"), CompleteEvent())
    ] == ["EMIT"]


def test_statement_is_complete_with_its_semicolon() -> None:
    assert is_whole("SHOW STREAMS;")
    assert is_whole("help")
    assert is_whole("exit ")
    assert not is_whole("SELECT *\nFROM orders")
    assert ends("exit;")
    assert ends(" QUIT ")
    assert not ends("exits")
