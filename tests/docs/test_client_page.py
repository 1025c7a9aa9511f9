"""The Python blocks of docs/CLIENT.md run, one after the other in one namespace."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode
from moldau.testing import Cluster
from tests.docs.markdown import ROOT, blocks
from tests.harness.registry.instances import choose_port, running_registry

ADDRESS = "localhost:9092"
REGISTRY = "http://localhost:8081"


def test_blocks_of_the_client_page_run() -> None:
    page = blocks((ROOT / "docs" / "CLIENT.md").read_text())
    code = [text for language, text in page if language == "python"]
    assert len(code) == 12
    namespace: dict[str, Any] = {}
    port = choose_port()
    settings = {"confluent.schema.registry.url": f"http://127.0.0.1:{port}"}
    with Cluster(config=settings) as node, running_registry(node.bootstrap_servers, port) as registry:
        for block in code:
            text = block.replace(ADDRESS, node.bootstrap_servers).replace(REGISTRY, registry.url)
            exec(compile(text, "CLIENT.md", "exec"), namespace)
    assert namespace["counting"].arrived == 1
    assert sorted(record.key for record in namespace["seen"]) == ["ELBE", "MOLD", "MOLD", "ODER"]
    assert namespace["refused"].code == ErrorCode.INVALID_RECORD
