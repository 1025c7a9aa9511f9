"""Rooms: packages are small, say what they are for, and unit tests mirror them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "moldau"
UNIT_TESTS = ROOT / "tests" / "unit"

#: Modules side by side in one package, `__init__` not counted.
MAX_MODULES = 20
#: One file per API or per stored record: the folder is the list of them.
CATALOGS = {SOURCE / "protocol" / "messages", SOURCE / "protocol" / "stored", SOURCE / "server" / "handlers"}
#: Modules that share a first word before they are a package of that name.
MAX_WITH_A_PREFIX = 2
MAX_LINES = 600
MAX_FUNCTION_LINES = 70

Function = ast.FunctionDef | ast.AsyncFunctionDef


def packages() -> list[Path]:
    return sorted({path.parent for path in SOURCE.rglob("*.py")})


def modules_of(package: Path) -> list[Path]:
    return sorted(path for path in package.glob("*.py") if path.stem != "__init__")


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_packages_have_few_modules() -> None:
    crowded = {
        relative(package): len(modules_of(package))
        for package in packages()
        if package not in CATALOGS and len(modules_of(package)) > MAX_MODULES
    }
    assert crowded == {}


def test_a_shared_prefix_is_a_package() -> None:
    found = {}
    for package in packages():
        if package in CATALOGS:
            continue
        prefixes = Counter(path.stem.split("_")[0] for path in modules_of(package) if "_" in path.stem)
        found.update(
            {f"{relative(package)}/{prefix}_*": n for prefix, n in prefixes.items() if n > MAX_WITH_A_PREFIX}
        )
    assert found == {}


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        relative(package)
        for package in packages()
        if not ast.get_docstring(ast.parse((package / "__init__.py").read_text()))
    ]
    assert silent == []


def test_modules_and_functions_are_small() -> None:
    large = [
        f"{relative(path)}: {lines} lines"
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := path.read_text().count("\n")) > MAX_LINES
    ]
    assert large + list(_long_functions()) == []


def _long_functions() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    yield f"{relative(path)}: {node.name} has {lines} lines"


def test_unit_tests_mirror_the_packages() -> None:
    folders = {path.parent.relative_to(UNIT_TESTS) for path in UNIT_TESTS.rglob("test_*.py")}
    assert [str(folder) for folder in sorted(folders) if not (SOURCE / folder).is_dir()] == []


def test_everything_in_interop_is_marked() -> None:
    """Plain tests need only PyPI."""
    folder = ROOT / "tests" / "interop"
    assert [path.name for path in folder.rglob("test_*.py") if "mark.interop" not in path.read_text()] == []
