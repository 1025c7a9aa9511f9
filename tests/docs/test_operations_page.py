"""docs/OPERATIONS.md: the names of events are those of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from tests.docs.markdown import section

PAGE = "docs/OPERATIONS.md"
LOGGED = {f"logger.{level}" for level in ("info", "warning", "error", "exception")}
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


def unnamed_lines(package: str) -> Iterator[str]:
    """Log calls from INFO on that do not name their event."""
    for file in (SOURCE / package).rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func) in LOGGED
                and "extra" not in {each.arg for each in call.keywords}
            ):
                yield f"{file.relative_to(SOURCE)}:{call.lineno}"


@pytest.mark.parametrize(
    "package",
    ["console", "http", "lag", "registry", "rest", "server/metrics", "server/tiered", "tiered"],
)
def test_log_lines_of_services_name_their_events(package: str) -> None:
    assert list(unnamed_lines(package)) == []
