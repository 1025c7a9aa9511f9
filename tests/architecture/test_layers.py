"""The layers of docs/ARCHITECTURE.md: imports point down only."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "moldau"

#: Lowest first. Packages of one layer do not import each other.
LAYERS = [
    {"base"},
    {"config", "protocol", "metrics", "schemas"},
    {"storage", "raft", "statemachine", "metadata", "tracing"},
    {"security"},
    {"controller", "groups", "share", "transactions", "quotas", "tiered"},
    {"network"},
    {"quorum", "replication", "client"},
    {"http"},
    {"server"},
    {"local"},
]
#: Packages that work with any Kafka cluster, and the packages they may import.
SERVICES = {"console", "lag", "pipelines", "registry", "rest"}
OF_USE_TO_SERVICES = {
    "base",
    "client",
    "config",
    "http",
    "metrics",
    "network",
    "protocol",
    "schemas",
    "security",
    "statemachine",
    "tracing",
}
#: Services that use another one.
USES = {"console": {"lag"}}
#: Packages that may import anything except each other: user commands do not depend on test support.
FREE = {"cli", "testing"}
PURE = {
    *("protocol", "metrics", "raft", "metadata", "controller"),
    *("groups", "share", "transactions", "quotas"),
}
IMPURE_MODULES = {"asyncio", "socket", "os", "time", "random", "threading", "subprocess"}

MODULES = sorted(SOURCE.rglob("*.py"))


def package_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name"
            names.add(node.module or "")
            if node.module == "moldau":
                names.update(f"moldau.{alias.name}" for alias in node.names)
    return names


def layer_of(package: str) -> int:
    return next(index for index, layer in enumerate(LAYERS) if package in layer)


def violations(path: Path) -> list[str]:
    package = package_of(path)
    if package in FREE or not package:
        return []
    found = []
    for name in sorted(imported_modules(path)):
        if package in SERVICES:
            allowed = OF_USE_TO_SERVICES | USES.get(package, set()) | {package}
            if name.startswith("moldau.") and name.split(".")[1] not in allowed:
                found.append(f"{path.relative_to(SOURCE)} imports {name}")
            continue
        other = name.split(".")[1] if name.startswith("moldau.") else package
        if other != package and (other in FREE | SERVICES or layer_of(other) >= layer_of(package)):
            found.append(f"{path.relative_to(SOURCE)} imports {name}")
    return found


def test_imports_point_down() -> None:
    assert [line for path in MODULES for line in violations(path)] == []


def test_commands_do_not_import_testing() -> None:
    found = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in MODULES
        if package_of(path) == "cli"
        for name in sorted(imported_modules(path))
        if name.startswith("moldau.testing")
    ]
    assert found == []


def test_pure_packages_do_no_io() -> None:
    found = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in MODULES
        if package_of(path) in PURE
        for name in sorted(imported_modules(path))
        if name.split(".")[0] in IMPURE_MODULES
    ]
    assert found == []


def test_every_package_has_a_layer() -> None:
    known = set().union(*LAYERS) | FREE | SERVICES
    assert {package_of(path) for path in MODULES} - {""} <= known


def test_only_pipelines_import_spark() -> None:
    found = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in MODULES
        if package_of(path) != "pipelines"
        for name in sorted(imported_modules(path))
        if name.split(".")[0] == "pyspark"
    ]
    assert found == []
