"""Write the table of every API and the permissions it requires into docs/SECURITY.md.

The table is made from the code: a handler's docstring has a paragraph that begins with `Requires` or `Lists`,
and the permissions it names are those that the module imports (`tests/docs/test_permissions.py`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.security.acl.enums import AclOperation, ResourceType
from moldau.security.acl.permissions import Permission
from moldau.server.dispatch import apis
from moldau.server.handlers import get_telemetry_subscriptions, push_telemetry
from moldau.server.settings import BROKER, CONTROLLER

PAGE = Path(__file__).parents[1] / "docs" / "SECURITY.md"
BEGIN, END = "<!-- permissions -->", "<!-- /permissions -->"
_RULE = re.compile(r"^(?:Requires|Lists) ", re.MULTILINE)
_OPERATIONS = "|".join(each.name for each in AclOperation)
_RESOURCE_TYPES = "|".join(each.name for each in ResourceType)
_NAMED = re.compile(rf"\b({_OPERATIONS}) on ({_RESOURCE_TYPES})\b")
_HEADER = ["| API | listeners | permissions |", "|---|---|---|"]
_INTRODUCTION = """\
## Permissions of every API

What a client needs for each request. Requests that change the cluster are authorised by the active
controller, for the client on whose behalf a broker forwards them. A topic or group that a client may not
describe is not revealed: it is refused whether it exists or not, and left out of lists. The table is
generated from the handlers (`python -m tools.permissions`).
"""


class HandlerRow(NamedTuple):
    key: ApiKey
    module: ModuleType
    #: BROKER, CONTROLLER or both.
    roles: tuple[str, ...]

    @property
    def rule(self) -> str:
        """The paragraph of the handler's docstring about its permissions."""
        paragraphs = (inspect.getdoc(self.module) or "").split("\n\n")
        return next((" ".join(each.split()) for each in paragraphs if _RULE.match(each)), "")

    @property
    def named_permissions(self) -> set[Permission]:
        """The permissions that the paragraph names."""
        return {
            Permission(AclOperation[operation], ResourceType[resource_type])
            for operation, resource_type in _NAMED.findall(self.rule)
        }

    @property
    def checked_permissions(self) -> set[Permission]:
        """The permissions that the module imports, also as the values of a table."""
        return set(_permissions(self.module))


def rows() -> list[HandlerRow]:
    """Return the handlers of all APIs by key; those of broker listeners first."""
    found: dict[tuple[ApiKey, str], HandlerRow] = {}
    for role, table in ((BROKER, apis.BROKER_APIS), (CONTROLLER, apis.CONTROLLER_APIS)):
        for key, bind in table.items():
            module = _handler_module(bind)
            known = found.get((key, module.__name__))
            roles = (role,) if known is None else (*known.roles, role)
            found[key, module.__name__] = HandlerRow(key, module, roles)
    for key, module in _telemetry_modules().items():
        found[key, module.__name__] = HandlerRow(key, module, (BROKER,))
    return sorted(found.values(), key=lambda row: row.key)


def section() -> str:
    lines = [f"| {APIS[row.key].name} | {', '.join(row.roles)} | {row.rule} |" for row in rows()]
    return "\n".join([BEGIN, "", _INTRODUCTION, *_HEADER, *lines, "", END])


def with_section(page: str) -> str:
    """Return a page with the current section at its place."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + section() + (after if end else rest)


def _telemetry_modules() -> dict[ApiKey, ModuleType]:
    """Return the handlers of client telemetry, which a node imports only if it receives it."""
    modules = (get_telemetry_subscriptions, push_telemetry)
    return dict(zip(apis.TELEMETRY_APIS, modules, strict=True))


def _handler_module(bind: object) -> ModuleType:
    """Return the module whose `handle` a row of the API table binds."""
    code = getattr(bind, "__code__")  # noqa: B009  the rows are lambdas
    modules = (getattr(apis, name, None) for name in code.co_names)
    return next(each for each in modules if isinstance(each, ModuleType))


def _permissions(module: ModuleType) -> Iterator[Permission]:
    for value in vars(module).values():
        if isinstance(value, Permission):
            yield value
        elif isinstance(value, Mapping):
            yield from (each for each in value.values() if isinstance(each, Permission))


if __name__ == "__main__":
    PAGE.write_text(with_section(PAGE.read_text()))
