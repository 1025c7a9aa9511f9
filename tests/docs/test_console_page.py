"""docs/CONSOLE.md: its commands run in their order; its settings and expressions are those of the code."""

from __future__ import annotations

import json
from pathlib import Path

from moldau.console import settings
from moldau.console.login import settings as oidc
from moldau.console.records.filters import compile_expression
from tests.docs.dev_services import CONSOLE, DevServices
from tests.docs.markdown import blocks, section

DOCUMENT = "docs/CONSOLE.md"


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    reader = DevServices(tmp_path)
    with reader.started(blocks(section(DOCUMENT, "Start it"), "sh")[0].text.strip(), CONSOLE):
        commands = reader.with_ports(blocks(section(DOCUMENT, "Use it from scripts"), "sh")[0].text)
        listed, created, written, read = (
            json.loads(reader.shell.run(line)) for line in commands.splitlines()
        )
    assert listed["topics"] == []
    assert created["topic"] == "orders"
    assert written["offset"] == 0
    assert [each["value"]["text"] for each in read["messages"]] == ["hello"]


def test_expressions_of_the_page_are_valid() -> None:
    rows = [
        line for line in section(DOCUMENT, "Find and write records").splitlines() if line.startswith("| `")
    ]
    assert len(rows) == 4
    for row in rows:
        compile_expression(row.split("`")[1])


def test_settings_of_the_page_are_those_of_the_console() -> None:
    documented = section(DOCUMENT, "Settings")
    for line in (settings.__doc__ or "").splitlines():
        if line.startswith("| `") and "bootstrap.servers" not in line and "client.*" not in line:
            assert line.split("|")[1].strip() in documented, line


def test_settings_of_openid_connect_are_those_of_the_console() -> None:
    documented = section(DOCUMENT, "Secure it")
    rows = [line for line in (oidc.__doc__ or "").splitlines() if line.startswith("| `oidc.")]
    assert len(rows) == 11
    for line in rows:
        assert line.split("|")[1].strip() in documented, line
