"""Pictures of flows: the topology of a streams application, and a pipeline with its sinks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from tests.harness.browser import opened_page, violations
from tests.harness.clients.streams_wire import StreamsWireClient, settle
from tests.harness.rest_proxy import Api, service
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.integration.console.test_stories import expect

SINKS = [
    {"topic": "clean", "role": "sink"},
    {"format": "parquet", "path": "/data/orders"},
    {"topic": "letters", "role": "dead letters"},
]


@pytest.fixture(scope="module")
def console(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder: Path = tmp_path_factory.mktemp("pipelines")
    query = {"query": "clean", "rows": 12, "rows_per_second": 5.25, "lag": {"orders": {"0": 4}}}
    status = {"name": "clean", "state": "running", "queries": [query], "sinks": SINKS}
    (folder / "clean").mkdir()
    (folder / "clean" / "status.json").write_text(json.dumps(status))
    with service("console", bootstrap, "--pipelines", str(folder)) as (port, _):
        yield Api(port, {"Accept": "application/json"})


@pytest.fixture
def streams_group(bootstrap: str, topic: str) -> Iterator[StreamsWireClient]:
    with AdminClient(bootstrap) as admin:
        assert admin.create_topics([NewTopic(f"{topic}-in", 2, 1)]) == {f"{topic}-in": None}
    with Wire(bootstrap, timeout=60) as wire:
        member = StreamsWireClient(wire, topic)
        settle(member)
        yield member
        member.beat(-1)


@pytest.mark.browser
def test_the_topology_of_a_streams_application_is_drawn_with_rates(
    console: Api, browser: Any, streams_group: StreamsWireClient
) -> None:
    member = streams_group
    path = f"/groups/{member.group_id}"
    eventually(lambda: console("GET", path).status == 200, timeout=20)
    found = console("GET", path).body
    first, second = found["topology"]
    assert (first["source_topics"], first["repartition_sink_topics"]) == ([member.source], [member.words])
    assert (second["repartition_source_topics"], second["changelog_topics"]) == (
        [member.words],
        [member.counts],
    )
    assert found["type"] == "Streams" and first["active_tasks"] == 2
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto(path)
        drawn = page.get_by_role("group", name=f"Topology of {member.group_id}")
        expect(drawn).to_contain_text("Subtopology 1")
        expect(drawn.get_by_role("img", name=f"{member.source} to Subtopology 0")).to_have_count(1)
        expect(page.locator(".copy pre").first).to_contain_text("kafka-streams-groups")
        source = drawn.get_by_role("link", name=f"{member.source}, source")
        expect(source).to_contain_text("0.0 records/s")
        assert violations(page) == []
        for _ in range(200):
            console("POST", f"/topics/{member.source}/messages/import", b"a\nb\n" * 500, kind="text/plain")
            member.beat()
            if "0.0" not in source.text_content():
                break
            page.wait_for_timeout(250)
        assert float(source.text_content().split("·")[1].split()[0].replace(",", "")) > 0
        source.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(member.source)


@pytest.mark.browser
def test_a_pipeline_is_drawn_with_its_sinks(console: Api, browser: Any) -> None:
    assert console("GET", "/pipelines/clean").body["sinks"] == SINKS
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto("/pipelines/clean")
        drawn = page.get_by_role("group", name="Flow of the pipeline clean")
        for text in (
            "orders",
            "running · 5.2 rows/s",
            "parquet",
            "/data/orders",
            "dead letters · no such topic",
        ):
            expect(drawn).to_contain_text(text)
        expect(drawn.get_by_role("img", name="clean to letters")).to_have_count(1)
        assert violations(page) == []
