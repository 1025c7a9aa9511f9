"""Requests recorded at Confluent's registry 8.5, with its answers, sent to ours over a real broker.

The recording is not part of the project: `MOLDAU_REGISTRY_EXCHANGES` names the folder, or it is
`../shared/registry-exchanges`. Each sequence has a registry with a topic of its own. Ids map one to one;
times and the texts of parsers are not compared.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.registry.wiring import create_service
from moldau.testing import Cluster
from tests.harness.registry.application import ask

pytestmark = pytest.mark.interop

_FOLDER = Path(os.environ.get("MOLDAU_REGISTRY_EXCHANGES", "../shared/registry-exchanges"))
_FILE = _FOLDER / "exchanges.jsonl.gz"
#: Sequences that end differently, and why.
_DIFFERENT = {
    "RestApiTest.testRegisterDropsRuleSet": "rule sets are kept, also in the free registry",
}


def _sequences() -> list[Any]:
    if not _FILE.exists():
        return []
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        return [_parameter(json.loads(line)) for line in lines]


def _parameter(sequence: dict[str, Any]) -> Any:
    reason = _DIFFERENT.get(sequence["test"])
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason is not None else []
    return pytest.param(sequence, id=sequence["test"], marks=marks)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


_recorded = pytest.mark.skipif(
    not _FILE.exists(), reason="MOLDAU_REGISTRY_EXCHANGES names no folder with the recording"
)


@_recorded
def test_the_recording_is_complete() -> None:
    sequences = [each.values[0] for each in _sequences()]
    assert (len(sequences), sum(len(each["x"]) for each in sequences)) == (177, 1376)


@_recorded
@pytest.mark.parametrize("sequence", _sequences())
def test_recorded_sequence(sequence: dict[str, Any], cluster: Cluster) -> None:
    asyncio.run(_replay(sequence, cluster.bootstrap_servers))


async def _replay(sequence: dict[str, Any], bootstrap: str) -> None:
    service = create_service(_properties(sequence, bootstrap), "${project.version}")
    try:
        await service.start(["http://127.0.0.1:8081"])
        ids: dict[int, int] = {}
        for number, exchange in enumerate(sequence["x"]):
            given = (exchange.get("b") or "").encode()
            answer = await ask(service.application, exchange["m"], exchange["p"], given, exchange["h"])
            status, body = answer.status, answer.body.decode()
            where = f"{number}: {exchange['m']} {exchange['p']} {exchange.get('b')}"
            expected = exchange.get("r") or ""
            assert (where, status) == (where, exchange["s"]), body
            if not exchange["p"].startswith("/v1/metadata"):
                assert (where, _compared(body)) == (where, _compared(expected))
                _map_ids(ids, _parsed(expected), _parsed(body))
    finally:
        await service.close()


def _properties(sequence: dict[str, Any], bootstrap: str) -> dict[str, str]:
    name = sequence["test"]
    return {
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic": f"_schemas.{name}",
        "schema.registry.group.id": name,
        "schema.compatibility.level": sequence["level"],
        "schema.reject.empty.subject": str("RejectEmpty" in name).lower(),
        "reference.versions.strict": str("VersionsStrict" in name).lower(),
    }


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def _compared(body: str) -> str:
    """Return a body without times and words of parsers, with the order of its fields."""
    return json.dumps(_reduced(_parsed(body)))


def _reduced(value: Any) -> Any:
    if isinstance(value, list):
        return [_reduced(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("error_code") == 42201:
        return {"error_code": 42201}
    if value.get("error_code") in (409, 40901):
        return {**value, "error_code": 409}
    reduced = {key: _reduced(each) for key, each in value.items()}
    if "messages" in reduced:
        reduced["messages"] = [each for each in reduced["messages"] if not each.startswith("Invalid schema")]
    if "ts" in reduced:
        reduced["ts"] = 0
    return reduced


def _map_ids(ids: dict[int, int], theirs: Any, ours: Any) -> None:
    if isinstance(theirs, dict) and isinstance(theirs.get("id"), int):
        assert ids.setdefault(theirs["id"], ours["id"]) == ours["id"]
