"""Write the tables of endpoints and settings into docs/REST.md.

The endpoints are those of the table of routes, the settings those of the tables in the modules' docstrings.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from moldau.http import cors
from moldau.http import settings as http_settings
from moldau.rest import settings as rest_settings
from moldau.rest.openapi.routes import API_ROUTES
from moldau.rest.routing import Parameter, Route

PAGE = Path(__file__).parents[1] / "docs" / "REST.md"
_INTRODUCTION = """\
The tables are generated from the code (`python -m tools.rest`). The proxy serves the same as an OpenAPI 3
description at `/openapi.json` and as a page at `/docs`.
"""
_CLUSTER = "/v3/clusters/{cluster_id}"


def endpoints() -> str:
    v3 = [route for route in API_ROUTES if route.version == "v3"]
    own = [route for route in v3 if _is_own(route)]
    confluents = [route for route in v3 if route not in own]
    return "\n".join(
        [
            _INTRODUCTION,
            f"v3; `…` stands for `{_CLUSTER}`:\n",
            _endpoint_table(confluents),
            "\nv3, of Moldau only:\n",
            _endpoint_table(own),
            "\nv2:\n",
            _endpoint_table([route for route in API_ROUTES if route.version == "v2"]),
            "\nQuery parameters of streaming reads:\n",
            *_parameters(own),
        ]
    )


def settings() -> str:
    return "\n".join(
        [
            "Of the proxy:\n",
            _table(rest_settings),
            "\nOf its listeners:\n",
            _table(http_settings),
            "\nOf CORS:\n",
            _table(cors),
        ]
    )


def with_tables(page: str) -> str:
    """Return a page with the current tables between their marks."""
    for name, text in (("endpoints", endpoints()), ("settings", settings())):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def _is_own(route: Route) -> bool:
    is_read = route.method == "GET" and route.path.endswith("/records")
    return is_read or route.path.endswith(("/offsets", "/default-configs"))


def _endpoint_table(routes: list[Route]) -> str:
    rows = [
        f"| {route.method} | `{route.path.replace(_CLUSTER, '…')}` | {route.summary} |" for route in routes
    ]
    return "\n".join(["| method | path | |", "|---|---|---|", *rows])


def _parameters(routes: list[Route]) -> list[str]:
    found: dict[str, Parameter] = {}
    for each in (parameter for route in routes for parameter in route.query):
        found.setdefault(each.name, each)
    rows = [f"| `{each.name}` | {each.type} | {each.description} |" for each in found.values()]
    return ["| parameter | type | meaning |", "|---|---|---|", *rows]


def _table(module: ModuleType) -> str:
    """Return the table of settings in a module's docstring."""
    lines = (module.__doc__ or "").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
