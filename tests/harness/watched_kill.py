"""A broker is killed while pages of the console are open in a browser: tables follow without a reload."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from tests.harness.browser import opened_page
from tests.harness.rest_proxy import Api
from tests.harness.waiting import eventually

#: Milliseconds after which a table shows what has changed in the cluster.
FOLLOWED_MS = 5_000
PARTITIONS = 6
#: Remembers whether the page has ever said that what it shows does not exist.
_OBSERVED = """() => {
    window.sameDocument = true;
    const gone = document.getElementById("gone");
    const seen = () => { if (!gone.hidden) window.wasGone = true; };
    new MutationObserver(seen).observe(gone, { attributes: true });
}"""


@dataclass(frozen=True)
class Pages:
    """Pages that stay open; each has connections of its own, as those of several people have."""

    console: Api
    topic: str
    group: str
    brokers: Any
    partitions: Any
    lag: Any
    live: Any

    def broker(self, id: int) -> Any:
        rows = self.brokers.get_by_role("table", name="Brokers").locator("tbody tr")
        return rows.filter(has=self.brokers.get_by_role("rowheader", name=str(id), exact=True))

    def write(self, number: int, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        """Write a record to each partition."""
        for each in partitions:
            fields = {"value": f"after {number}", "partition": each}
            assert self.console("POST", f"/topics/{self.topic}/messages", fields).status == 201

    @property
    def all(self) -> tuple[Any, ...]:
        return self.brokers, self.partitions, self.lag, self.live


@contextmanager
def opened_pages(browser: Any, console: Api, bootstrap: str, topic: str) -> Iterator[Pages]:
    """Create a topic and a group, and open Brokers, Partitions, the group, and Messages while live."""
    group = f"group-{topic}"
    with AdminClient(bootstrap) as admin:
        assert admin.create_topics([NewTopic(topic, PARTITIONS, 3)]) == {topic: None}
        eventually(lambda: console("GET", f"/topics/{topic}").status == 200, timeout=20)
        admin.alter_group_offsets(group, {TopicPartition(topic, each): 0 for each in range(PARTITIONS)})
    url = f"http://127.0.0.1:{console.port}"
    with ExitStack() as stack:
        brokers, partitions, lag, live = (stack.enter_context(opened_page(browser, url)) for _ in range(4))
        brokers.goto("/brokers")
        partitions.goto(f"/topics/{topic}/partitions")
        lag.goto(f"/groups/{group}")
        live.goto(f"/topics/{topic}/messages")
        with live.expect_response(re.compile("/follow")):
            live.get_by_role("switch", name="Live").check()
        pages = Pages(console, topic, group, brokers, partitions, lag, live)
        for page in pages.all:
            page.evaluate(_OBSERVED)
        yield pages
        for page in pages.all:
            assert page.evaluate("window.sameDocument") is True
            assert page.evaluate("window.wasGone") is None
            assert page.get_by_role("alert").all_inner_texts() == []


def active_controller(console: Api) -> int:
    (found,) = (each["id"] for each in console("GET", "/brokers").body["brokers"] if each["controller"])
    return int(found)


def watch_a_kill(
    pages: Pages, victim: int, kill: Callable[[], None], noticed: Callable[[], bool] | None = None
) -> None:
    """Kill a broker; the pages show it within five seconds.

    `noticed`: whether the cluster knows, for one that waits until a broker's session has timed out.
    """
    from playwright.sync_api import expect

    count = len(pages.console("GET", "/brokers").body["brokers"])
    before = int(pages.lag.get_by_test_id("total-lag").inner_text())
    expect(pages.brokers.get_by_text("Online", exact=True)).to_have_count(count)
    placement = pages.partitions.get_by_role("table", name="Partitions").locator("tbody tr")
    leaders = [each.get_by_role("cell").nth(0) for each in placement.all()]
    assert str(victim) in [each.inner_text() for each in leaders]
    kill()
    if noticed is not None:
        eventually(noticed, timeout=60)
    deadline = time.monotonic() + FOLLOWED_MS / 1000

    def left_ms() -> float:
        return max(1.0, (deadline - time.monotonic()) * 1000)

    expect(pages.broker(victim)).to_contain_text("Offline", timeout=left_ms())
    for leader in leaders:
        expect(leader).to_have_text(re.compile(rf"^(?!{victim}$)\d+$"), timeout=left_ms())
    under_replicated = placement.get_by_text("under-replicated")
    expect(under_replicated).to_have_count(PARTITIONS, timeout=left_ms())
    controller = pages.brokers.get_by_role("row").filter(
        has=pages.brokers.get_by_text("Controller", exact=True)
    )
    expect(controller).to_have_count(1, timeout=left_ms())
    expect(controller).to_contain_text("Online", timeout=left_ms())
    pages.write(victim)
    total = pages.lag.get_by_test_id("total-lag")
    expect(total).to_have_text(str(before + PARTITIONS), timeout=FOLLOWED_MS)
    shown = pages.live.get_by_role("cell", name=f"after {victim}", exact=True)
    expect(shown).to_have_count(PARTITIONS, timeout=FOLLOWED_MS)
    # A page that is opened now is answered, too.
    assert pages.console("GET", "/topics").status == 200


def watch_the_return(pages: Pages, victim: int) -> None:
    """The pages show that a broker has returned."""
    from playwright.sync_api import expect

    expect(pages.broker(victim)).to_contain_text("Online")
    expect(pages.partitions.get_by_text("under-replicated")).to_have_count(0)
