"""What a developer does with many records in the console, in a real browser: searches, filters, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.harness.browser import opened_page
from tests.harness.rest_proxy import service
from tests.integration.console.test_stories import create, expect

pytestmark = pytest.mark.browser
#: So many that a search by a long expression takes seconds.
MANY = 100_000
LONG = "value.n == 7" + " or value.n < 0" * 60


def test_a_search_shows_its_progress_and_is_cancelled(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": MANY}
    )
    for number in range(MANY):
        # Several fetches, between which the progress is reported.
        producer.produce(topic, f'{{"n": {number}, "text": "{"x" * 300}"}}')
    assert producer.flush(60) == 0
    page.goto(f"/topics/{topic}/messages")
    page.get_by_label("Expression").fill(LONG)
    page.get_by_role("button", name="Read").click()
    bar = page.get_by_role("progressbar", name="Records searched")
    expect(bar).to_be_visible()
    expect(page.get_by_text(f"of {MANY:,} records, 1 found")).to_be_visible()
    expect(page.get_by_role("table", name="Messages").locator("tbody tr")).to_have_count(1)
    done = float(bar.get_attribute("value"))
    page.wait_for_function(
        "done => document.querySelector('[data-progress] progress').value > done", arg=done
    )
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("The search is cancelled.")
    expect(bar).to_be_hidden()
    assert page.evaluate("document.querySelector('[data-progress] progress').value") < 100


def test_filters_are_kept_and_what_they_select_is_exported(
    page: Any, bootstrap: str, topic: str, console: Any
) -> None:
    create(bootstrap, topic)
    lines = "\n".join(json.dumps({"key": f"k{n}", "value": {"n": n}}) for n in range(30)).encode()
    console("POST", f"/topics/{topic}/messages/import", lines, kind="text/plain")
    page.goto(f"/topics/{topic}/messages")
    page.get_by_label("Expression").fill("value.n >= 27")
    page.get_by_role("button", name="Keep this filter").click()
    expect(page.get_by_role("status")).to_have_text("The filter is kept in this browser.")
    page.goto(f"/topics/{topic}/messages")
    page.get_by_role("combobox", name="Saved").select_option("value.n >= 27")
    expect(page.get_by_label("Expression")).to_have_value("value.n >= 27")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    assert download.value.suggested_filename == f"{topic}.jsonl"
    found = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    assert sorted(each["key"] for each in found) == ["k27", "k28", "k29"]


def test_masked_fields_are_hidden_in_the_browser(browser: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=1)
    with (
        service("console", bootstrap, "--set", "masking.fields=card") as (port, _),
        opened_page(browser, f"http://127.0.0.1:{port}") as page,
    ):
        page.goto(f"/topics/{topic}/messages")
        page.get_by_role("button", name="Produce").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("textbox", name="Value", exact=True).fill('{"card": "4111", "n": 1}')
        dialog.get_by_role("button", name="Send").click()
        row = page.get_by_role("table", name="Messages").locator("tbody tr")
        expect(row).to_contain_text('{"card": "••••", "n": 1}')
        row.get_by_role("link", name="0").click()
        expect(page.locator(".tree")).to_contain_text("card ••••")
        assert "4111" not in page.content()


def test_commands_are_copied_from_any_page(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/topics/{topic}/partitions")
    opener = page.get_by_role("button", name="Copy as")
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.click()
    for name, text in (
        ("command", f"kafka-topics --bootstrap-server {bootstrap} --describe --topic {topic}"),
        ("curl", f"/topics/{topic}/partitions"),
        ("Python", "AdminClient"),
    ):
        page.get_by_role("button", name=f"Copy {name}").click()
        expect(page.get_by_role("status")).to_have_text("Copied.")
        assert text in page.evaluate("navigator.clipboard.readText()")
    opener.click()
    expect(page.get_by_role("button", name="Copy curl")).to_be_hidden()
