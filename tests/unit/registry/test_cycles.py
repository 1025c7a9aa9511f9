"""Schemas that refer to each other, which a topic may have because other programs wrote it."""

from __future__ import annotations

import json

import pytest

from tests.harness.registry.cycles import KINDS, request
from tests.unit.registry.memory_log import MemoryLog
from tests.unit.registry.requests import TestRegistry, on_a_loop


def record(kind: str, number: int, name: str, other: str) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": name, "version": 1, "magic": 1}
    value = {"subject": name, "version": 1, "id": number, **request(kind, name, other), "deleted": False}
    return json.dumps(key, separators=(",", ":")).encode(), json.dumps(value).encode()


#: Method, path, names of the schema and of the one it uses, and the statuses of the types.
REQUESTS = [
    ("GET", "/subjects/A/versions/1", None, (200, 200, 200)),
    ("GET", "/subjects/A/versions/1?format=resolved", None, (422, 200, 200)),
    ("GET", "/subjects/A/versions/1?format=serialized", None, (422, 200, 422)),
    ("GET", "/schemas/ids/2?format=resolved", None, (422, 200, 200)),
    ("GET", "/subjects/A/versions/1/referencedby", None, (200, 200, 200)),
    ("POST", "/subjects/A", ("A", "B"), (422, 404, 404)),
    ("POST", "/compatibility/subjects/A/versions?verbose=true", ("A", "B"), (200, 200, 200)),
    ("POST", "/subjects/C/versions", ("C", "A"), (422, 200, 200)),
    ("POST", "/subjects/A/versions", ("A", "B"), (422, 200, 200)),
    ("DELETE", "/subjects/A/versions/1", None, (422, 422, 422)),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_is_answered(kind: str) -> None:
    @on_a_loop
    async def check() -> None:
        log = MemoryLog()
        log.records = [record(kind, 1, "A", "B"), record(kind, 2, "B", "A")]
        registry = await TestRegistry(log, compatibility_level="FULL_TRANSITIVE").start()
        for method, path, names, statuses in REQUESTS:
            body = None if names is None else request(kind, *names)
            answer = await registry.ask(method, path, body)
            expected = statuses[list(KINDS).index(kind)]
            assert (path, answer.status) == (path, expected), answer.body
        refused = await registry.ask("DELETE", "/subjects/A")
        assert refused.json["error_code"] == 42206

    check()
