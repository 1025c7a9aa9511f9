"""Write the tables of endpoints and settings into docs/REGISTRY.md.

The endpoints are those of the table of routes, with the query parameters that their functions read; the
settings are those of the tables in the modules' docstrings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from moldau.http import authentication, cors
from moldau.http import settings as http_settings
from moldau.registry import settings as registry_settings
from moldau.registry.api.application import routes
from moldau.registry.api.call import Route
from moldau.registry.api.metadata import ServerMetadata
from moldau.registry.log import settings as log_settings

PAGE = Path(__file__).parents[1] / "docs" / "REGISTRY.md"
_INTRODUCTION = """\
The tables are generated from the code (`python -m tools.registry`). Every path also exists below
`/contexts/{context}`. The permission is needed with ACLs only.
"""
_READS = re.compile(r'call\.(?:text|texts|flag|number)\(\s*"(\w+)"')
#: Members of a call that read several parameters, or one under another name.
_MEMBERS = {"page": ("offset", "limit"), "prefix": ("subjectPrefix",), "subject_filter": ("subject",)}
_HELPER = re.compile(r"\b(_\w+)\((?:[\w., ]*\b)?call\b")


def endpoints() -> str:
    rows = [_row(route) for route in routes(ServerMetadata())]
    header = ["| method | path | | query parameters | permission |", "|---|---|---|---|---|"]
    return "\n".join([_INTRODUCTION, *header, *rows])


def settings() -> str:
    parts: list[tuple[str, ModuleType]] = [
        ("Of the registry:", registry_settings),
        ("Of its topic and of several instances:", log_settings),
        ("Of its listeners:", http_settings),
        ("Of logins:", authentication),
        ("Of CORS:", cors),
    ]
    return "\n\n".join(f"{title}\n\n{_table(module)}" for title, module in parts)


def with_tables(page: str) -> str:
    """Return a page with the current tables between their marks."""
    for name, text in (("endpoints", endpoints()), ("settings", settings())):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def query_parameters(route: Route) -> list[str]:
    """Return the query parameters that the function of a route reads, itself or in its helpers."""
    function: Callable[..., Any] = route.run or route.decide
    return list(dict.fromkeys(_read_by(function, set())))


def _read_by(function: Any, seen: set[str]) -> list[str]:
    source = inspect.getsource(function)
    found = _READS.findall(source)
    for member, names in _MEMBERS.items():
        if f"call.{member}" in source:
            found += names
    for helper in _HELPER.findall(source):
        called = function.__globals__.get(helper)
        if helper not in seen and isinstance(called, FunctionType):
            seen.add(helper)
            found += _read_by(called, seen)
    return found


def _row(route: Route) -> str:
    parameters = ", ".join(f"`{name}`" for name in query_parameters(route))
    return f"| {route.method} | `{route.path}` | {route.summary} | {parameters} | {route.operation} |"


def _table(module: ModuleType) -> str:
    """Return the table of settings in a module's docstring."""
    lines = (module.__doc__ or "").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
