"""Paths named in docs/ARCHITECTURE.md and CONTRIBUTING.md exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import ROOT

#: `server/handlers/produce.py`, `pipelines/streams/tasks`, `tests/simulation`: a path in backticks.
_PATH = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+(?:\.py)?)?)`")


@pytest.mark.parametrize("page", ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_named_paths_exist(page: str) -> None:
    paths = [
        path for path in _PATH.findall((ROOT / page).read_text()) if path.count("/") > 1 or path[-1] != "/"
    ]
    assert paths
    assert [
        path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "src/moldau"))
    ] == []
