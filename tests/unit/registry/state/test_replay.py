"""Any sequence of requests: the topic, whole or compacted, gives the same answers; ids are not reused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.registry.memory_log import MemoryLog
from tests.unit.registry.requests import TestRegistry, record

_SUBJECTS = ("a", "b", ":.x:a")
_subject = st.sampled_from(_SUBJECTS)
_version = st.sampled_from(["1", "2", "3", "latest"])
_flag = st.sampled_from(["false", "true"])
_schema = st.sampled_from([json.dumps(record("r", name)) for name in "pqrs"])


_OTHER_TYPES = (
    {"schema": '{"type":"object"}', "schemaType": "JSON", "references": []},
    {"schema": 'syntax = "proto3"; message M { string a = 1; }', "schemaType": "PROTOBUF", "references": []},
)


def _rule(expression: str) -> dict[str, str]:
    return {"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": expression}


@st.composite
def _registration(draw: st.DrawFn) -> tuple[str, str, Any]:
    body: dict[str, Any] = {"schema": draw(_schema)}
    if draw(st.booleans()):
        body["metadata"] = {"properties": {"owner": draw(st.sampled_from(["x", "y"]))}}
    if draw(st.integers(0, 4)) == 0:
        body["references"] = [{"name": "r", "subject": draw(st.sampled_from("ab")), "version": 1}]
        body["schema"] = json.dumps({"type": "record", "name": "u", "fields": [{"name": "f", "type": "r"}]})
    if draw(st.integers(0, 4)) == 0:
        body["ruleSet"] = {"domainRules": [_rule(draw(st.sampled_from(["true", "false"])))]}
    if draw(st.integers(0, 4)) == 0:
        body |= draw(st.sampled_from(_OTHER_TYPES))
    if draw(st.integers(0, 4)) == 0:
        body["id"] = draw(st.integers(1, 6))
        body["version"] = draw(st.integers(0, 4))
    return "POST", f"/subjects/{draw(_subject)}/versions", body


_request = st.one_of(
    _registration(),
    _registration(),
    st.builds(lambda s, p: ("DELETE", f"/subjects/{s}?permanent={p}", None), _subject, _flag),
    st.builds(
        lambda s, v, p: ("DELETE", f"/subjects/{s}/versions/{v}?permanent={p}", None),
        _subject,
        _version,
        _flag,
    ),
    st.builds(
        lambda s, level: ("PUT", f"/config/{s}", {"compatibility": level}),
        _subject,
        st.sampled_from(["NONE", "FULL"]),
    ),
    st.builds(
        lambda s, mode: ("PUT", f"/mode/{s}", {"mode": mode}),
        _subject,
        st.sampled_from(["READWRITE", "IMPORT", "READONLY"]),
    ),
    st.builds(lambda s: ("DELETE", f"/mode/{s}", None), _subject),
    st.builds(lambda s: ("DELETE", f"/config/{s}", None), _subject),
    st.builds(
        lambda level: ("PUT", "/config", {"compatibility": level, "normalize": level == "NONE"}),
        st.sampled_from(["NONE", "FULL"]),
    ),
    st.builds(
        lambda s, alias: ("PUT", f"/config/{s}", {"alias": alias}),
        _subject,
        st.sampled_from(["a", "b"]),
    ),
    st.builds(
        lambda s, v, tag: (
            "POST",
            f"/subjects/{s}/versions/{v}/tags",
            {"tagsToAdd": [{"schemaEntity": {"entityPath": "r", "entityType": "sr_record"}, "tags": [tag]}]},
        ),
        _subject,
        _version,
        st.sampled_from(["PII", "PUBLIC"]),
    ),
    st.just(("DELETE", "/contexts/.x", None)),
    st.builds(
        lambda s, lifecycle: (
            "POST",
            "/associations",
            {
                "resourceName": "t",
                "resourceNamespace": "-",
                "resourceId": "id-t",
                "resourceType": "topic",
                "associations": [{"subject": s, "associationType": "value", "lifecycle": lifecycle}],
            },
        ),
        _subject,
        st.sampled_from(["WEAK", "STRONG"]),
    ),
    st.just(("DELETE", "/associations/resources/id-t?resourceType=topic&cascadeLifecycle=true", None)),
)
_QUESTIONS = (
    "/subjects?deleted=true",
    "/schemas?deleted=true&subjectPrefix=:*:",
    "/contexts",
    *(f"/schemas/ids/{number}/versions?deleted=true" for number in range(1, 8)),
    *(f"/contexts/.x/schemas/ids/{number}?fetchMaxId=true" for number in range(1, 5)),
    *(f"/{kind}/{subject}" for kind in ("config", "mode") for subject in _SUBJECTS),
    *(f"/subjects/{subject}/versions/1/referencedby?deleted=true" for subject in _SUBJECTS),
    *(f"/associations/subjects/{subject}" for subject in _SUBJECTS),
    "/config",
)


#: What compaction may change: the time of a record, and an id that no record has any more.
_TIMES = ("ts", "createTs", "updateTs", "maxId")


async def _answers(registry: TestRegistry, *, times: bool) -> list[Any]:
    found = [(await registry.ask("GET", path)).body for path in _QUESTIONS]
    return found if times else [_without_times(json.loads(each)) for each in found]


def _without_times(value: Any) -> Any:
    if isinstance(value, list):
        return sorted((_without_times(each) for each in value), key=str)
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in _TIMES}
    return value


async def _run(requests: list[tuple[str, str, Any]]) -> None:
    registry = await TestRegistry().start()
    given_ids: dict[tuple[bool, int], str] = {}
    for method, path, body in requests:
        answer = await registry.ask(method, path, body)
        assert answer.status < 500
        if path.endswith("/versions") and answer.status == 200 and "id" not in body:
            reply = answer.json
            key = (":" in path, reply["id"])
            assert given_ids.setdefault(key, reply["guid"]) == reply["guid"]
    replayed = MemoryLog()
    replayed.records = list(registry.log.records)
    assert await _answers(await TestRegistry(replayed).start(), times=True) == await _answers(
        registry, times=True
    )
    compacted = MemoryLog()
    last = {key: offset for offset, (key, _) in enumerate(registry.log.records)}
    compacted.records = [registry.log.records[offset] for offset in sorted(last.values())]
    loaded = await TestRegistry(compacted).start()
    assert await _answers(loaded, times=False) == await _answers(registry, times=False)


@settings(max_examples=150, deadline=None)
@given(st.lists(_request, max_size=25))
def test_replay_and_compaction_preserve_the_answers(requests: list[tuple[str, str, Any]]) -> None:
    asyncio.run(_run(requests))
