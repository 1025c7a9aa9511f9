"""docs/OPERATIONS.md: the names of events are those of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import moldau
from tests.docs.markdown import section

PAGE = "docs/OPERATIONS.md"
SOURCE = Path(moldau.__file__).parent


def named_events() -> Iterator[str]:
    """The names in `extra=event(…)`, with both of a conditional expression."""
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        if "extra=event(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.keyword) and call.arg == "extra" and isinstance(call.value, ast.Call):
                yield from (
                    each.value
                    for each in ast.walk(call.value.args[0])
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                )


def test_events_of_the_page_are_those_of_the_code() -> None:
    listed = {
        name.strip(" `")
        for line in section(PAGE, "Logs").splitlines()
        if line.startswith("| `") and line.count("|") == 4 and "kafka." not in line and "moldau." not in line
        for name in line.split("|")[1].split(",")
    }
    # These two have their names from variables.
    assert listed == {*named_events(), "audit", "login.failed", "request", "slow-request"}
