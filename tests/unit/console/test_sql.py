"""Statements that the console refuses, and the registry that the others use."""

from __future__ import annotations

import asyncio

import pytest

from moldau.client.wire.settings import ClientSettings
from moldau.console.sql import Run, SqlRuns, check_statements, without_literals
from moldau.console.web.call import Refused
from moldau.console.web.forms import InvalidField

SETTINGS = ClientSettings.from_properties({"bootstrap.servers": "localhost:9092"})


@pytest.mark.parametrize(
    "statement",
    [
        "RUN SCRIPT '/etc/passwd';",
        "show topics; run\n\tScript 'x'",
        "RUN /* /* */ */ SCRIPT 'x';",
        "RUN -- comment\nSCRIPT 'x';",
        "\"RUN\" SCRIPT 'x';",
        "CREATE STREAM s (a INT) WITH (topic='t', Avro_Schema_File='/etc/passwd');",
        "SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM s;",
        "SELECT `try_reflect`('java.lang.System', 'exit') FROM s;",
        "SELECT JAVA_METHOD('java.lang.System', 'getenv') FROM s;",
    ],
)
def test_statements_that_read_files_or_call_java_are_refused(statement: str) -> None:
    with pytest.raises(InvalidField, match="is not possible in the console"):
        check_statements(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT run, script FROM jobs;",
        "SELECT * FROM runs;",
        "SHOW TOPICS; -- run it",
        "SELECT reflected FROM s;",
    ],
)
def test_other_statements_are_not(statement: str) -> None:
    check_statements(statement)


def test_statements_use_the_registry_of_the_console() -> None:
    assert Run("SHOW TOPICS;", SETTINGS).script == "RUN SCRIPT 'statements.sql';"
    script = Run("SHOW TOPICS;", SETTINGS, "http://user:a'b@localhost:8081").script
    assert (
        script
        == "SET 'schema.registry.url' = 'http://user:a''b@localhost:8081'; RUN SCRIPT 'statements.sql';"
    )


def test_statements_are_audited_without_their_texts() -> None:
    text = """INSERT INTO cards VALUES ('4111', 'O''Neil'); SELECT "a" FROM t WHERE b = 'open"""
    assert (
        without_literals(text) == """INSERT INTO cards VALUES ('…', '…'); SELECT "a" FROM t WHERE b = '…'"""
    )


def test_the_number_of_running_statements_is_bounded_while_they_start() -> None:
    async def play() -> None:
        runs = SqlRuns()
        streams = [runs.results(Run("SHOW TOPICS;", SETTINGS)) for _ in range(3)]
        begun = [asyncio.ensure_future(anext(each)) for each in streams]
        with pytest.raises(Refused, match="2 statements are running"):
            await begun[2]
        for each in begun[:2]:
            each.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        # Those that have ended make room for others.
        other = asyncio.ensure_future(anext(runs.results(Run("SHOW TOPICS;", SETTINGS))))
        await asyncio.sleep(0)
        assert not other.done()
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)

    asyncio.run(play())
