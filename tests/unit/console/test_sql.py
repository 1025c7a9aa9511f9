"""Statements that the console refuses, and the registry that the others use."""

from __future__ import annotations

import pytest

from moldau.client.wire.settings import ClientSettings
from moldau.console.sql import Run, check_statements
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
