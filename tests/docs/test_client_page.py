"""The Python blocks of docs/CLIENT.md run, one after the other in one namespace."""

from __future__ import annotations

from typing import Any

from moldau.testing import Cluster
from tests.docs.markdown import ROOT, blocks

ADDRESS = "localhost:9092"


def test_blocks_of_the_client_page_run() -> None:
    page = blocks((ROOT / "docs" / "CLIENT.md").read_text())
    code = [text for language, text in page if language == "python"]
    assert len(code) == 8
    namespace: dict[str, Any] = {}
    with Cluster() as node:
        for block in code:
            exec(compile(block.replace(ADDRESS, node.bootstrap_servers), "CLIENT.md", "exec"), namespace)
    assert namespace["counting"].arrived == 1
    assert sorted(record.key for record in namespace["seen"]) == ["ELBE", "MOLD", "MOLD", "ODER"]
