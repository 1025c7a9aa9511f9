"""A shop on three nodes: the pictures of docs/CONSOLE.md and the README, and a node that is killed.

`UPDATE_SCREENSHOTS=1` replaces the files in docs/console; otherwise the pictures are only taken and compared
in size with what a page may weigh.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.client.records import OffsetAndMetadata
from moldau.testing import Cluster
from tests.harness.browser import opened_page
from tests.harness.rest_proxy import Api, service
from tests.harness.watched_kill import active_controller, opened_pages, watch_a_kill, watch_the_return
from tests.integration.console.test_stories import expect

pytestmark = pytest.mark.browser
CONFIG: dict[str, Any] = {}
DOCS = Path(__file__).parents[3] / "docs" / "console"
MOST_BYTES = 150_000
NAMES = ("overview", "messages", "partitions", "group", "narrow", "produce")


@pytest.fixture(scope="module")
def console(three: Cluster) -> Iterator[Api]:
    with service("console", three.bootstrap_servers) as (port, _):
        fill(three, Api(port, {"Accept": "application/json"}))
    # The charts of another console begin after the scene was set.
    with service("console", three.bootstrap_servers) as (port, _):
        yield Api(port, {"Accept": "application/json"})


@pytest.fixture
def page(browser: Any, console: Api) -> Iterator[Any]:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        yield page


def fill(cluster: Cluster, api: Api) -> None:
    chance = random.Random(7)
    topics = {"orders": 6, "payments": 6, "shipments": 3, "customers": 3, "clicks": 12, "stock": 3}
    with AdminClient(cluster.bootstrap_servers) as admin:
        compacted = {"cleanup.policy": "compact"}
        admin.create_topics(
            [
                NewTopic(name, count, 3, configs=compacted if name in ("customers", "stock") else {})
                for name, count in topics.items()
            ]
        )
        for name in topics:
            lines = [json.dumps(record(name, number, chance)) for number in range(400)]
            body = "\n".join(lines).encode()
            assert api("POST", f"/topics/{name}/messages/import", body, kind="text/plain").status == 201
        for group, topic, behind in (
            ("billing", "orders", 0),
            ("fraud-detection", "payments", 31),
            ("warehouse", "shipments", 4),
            ("recommendations", "clicks", 12),
        ):
            ends = dict.fromkeys(range(topics[topic]), 400 // topics[topic])
            parts = {
                p["partition"]: p["end"] for p in api("GET", f"/topics/{topic}/partitions").body["partitions"]
            }
            offsets = {
                TopicPartition(topic, index): OffsetAndMetadata(max(parts[index] - behind, 0))
                for index in ends
            }
            admin.alter_group_offsets(group, offsets)


def record(topic: str, number: int, chance: random.Random) -> dict[str, Any]:
    customer = f"customer-{chance.randrange(90):03d}"
    article = chance.choice(["Darjeeling", "Oolong", "Sencha", "Earl Grey", "Assam"])
    value = {
        "id": 10_000 + number,
        "customer": customer,
        "article": article,
        "amount": round(chance.uniform(3, 180), 2),
        "status": chance.choice(["new", "paid", "sent"]),
    }
    return {"key": customer, "value": value, "headers": {"source": chance.choice(["shop", "app"])}}


def take(page: Any, name: str, folder: Path) -> None:
    page.mouse.move(0, 0)
    file = folder / f"{name}.png"
    page.screenshot(path=file, animations="disabled", caret="hide")
    assert file.stat().st_size < MOST_BYTES, name


def test_pictures_of_the_console(browser: Any, console: Api, tmp_path: Path) -> None:
    folder = DOCS if os.environ.get("UPDATE_SCREENSHOTS") else tmp_path
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.set_viewport_size({"width": 1120, "height": 660})
        page.goto("/")
        for number in range(25 if folder == DOCS else 2):
            lines = "\n".join(f"{number}-{each}" for each in range(90 + 37 * number % 80)).encode()
            console("POST", "/topics/clicks/messages/import", lines, kind="text/plain")
            page.wait_for_timeout(1000)
        expect(page.get_by_role("table", name="Lag verdicts").locator("tbody tr")).to_have_count(4)
        expect(page.locator("canvas")).to_have_count(2)
        take(page, "overview", folder)
        page.goto("/topics/payments/messages?expression=value.amount+%3E+150&limit=9")
        expect(page.get_by_role("status")).to_contain_text("9 found")
        take(page, "messages", folder)
        page.get_by_role("button", name="Produce").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Key").fill("customer-007")
        dialog.get_by_role("textbox", name="Value", exact=True).fill('{"id": 10400, "amount": 42.5}')
        dialog.get_by_label("Header name").fill("source")
        dialog.get_by_label("Header value").fill("console")
        take(page, "produce", folder)
        page.keyboard.press("Escape")
        page.goto("/topics/orders/partitions")
        take(page, "partitions", folder)
        page.emulate_media(color_scheme="dark")
        page.goto("/groups/fraud-detection")
        expect(page.locator("canvas")).to_have_count(1)
        take(page, "group", folder)
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 390, "height": 720})
        page.goto("/topics")
        take(page, "narrow", folder)


def test_the_pictures_are_in_the_documentation() -> None:
    text = (DOCS.parent / "CONSOLE.md").read_text()
    for name in NAMES:
        assert f"(console/{name}.png)" in text
        assert (DOCS / f"{name}.png").stat().st_size < MOST_BYTES


def test_killed_nodes_are_seen_without_reloading(
    browser: Any, console: Api, cluster: Cluster, topic: str
) -> None:
    """The active controller, and the node that the console's `--bootstrap-server` names first."""
    with opened_pages(browser, console, cluster.bootstrap_servers, topic) as pages:
        controller = active_controller(console)
        first = cluster.brokers[0].id
        for victim in (controller, first if first != controller else cluster.brokers[1].id):
            watch_a_kill(pages, victim, cluster.node(victim).kill)
            cluster.node(victim).start()
            watch_the_return(pages, victim)
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto("/")
        expect(page.get_by_text("Healthy")).to_be_visible()
