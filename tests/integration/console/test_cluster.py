"""Three nodes: what the console shows when one of them is killed, and screenshots for docs/CONSOLE.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster
from tests.harness.browser import opened_page
from tests.harness.rest_proxy import Api, service
from tests.integration.console.test_stories import expect

pytestmark = pytest.mark.browser
CONFIG: dict[str, Any] = {}


@pytest.fixture(scope="module")
def console(three: Cluster) -> Iterator[Api]:
    with service("console", three.bootstrap_servers) as (port, _):
        yield Api(port, {"Accept": "application/json"})


@pytest.fixture
def page(browser: Any, console: Api) -> Iterator[Any]:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        yield page


def test_a_killed_node_is_seen_without_reloading(page: Any, cluster: Cluster, topic: str) -> None:
    with AdminClient(cluster.bootstrap_servers) as admin:
        assert admin.create_topics([NewTopic(topic, 6, 3)]) == {topic: None}
    page.goto("/brokers")
    rows = page.get_by_role("table", name="Brokers").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.get_by_text("Online")).to_have_count(3)
    expect(rows.get_by_text("Controller")).to_have_count(1)
    page.evaluate("window.sameDocument = true")
    victim = cluster.brokers[1]
    begin = time.monotonic()
    victim.kill()
    expect(rows.nth(1).get_by_text("Offline")).to_be_visible()
    seen = time.monotonic() - begin
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_text("Degraded")).to_be_visible()
    page.goto(f"/topics/{topic}/partitions")
    expect(page.get_by_role("table", name="Partitions").get_by_text("under-replicated")).to_have_count(6)
    victim.start()
    expect(page.get_by_role("table", name="Partitions").get_by_text("under-replicated")).to_have_count(0)
    page.goto("/brokers")
    expect(rows.get_by_text("Online")).to_have_count(3)
    # Followed within 5 s; the rest is patience with a busy machine.
    assert seen < 15
    print(f"the killed broker was shown as offline after {seen:.1f} s")
