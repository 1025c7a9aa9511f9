"""What a developer does in the console, in a real browser, found by roles and names."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.client.records import OffsetAndMetadata
from tests.harness.browser import PATIENCE_MS, violations, violations_of_dialogs
from tests.harness.tools import Tools

pytestmark = pytest.mark.browser
#: Milliseconds after which a table shows what has changed in the cluster.
FOLLOWED_MS = 5_000
HOSTILE = '<script>document.title="owned"</script><img src=x onerror="document.title=1">'


def expect(what: Any) -> Any:
    from playwright.sync_api import expect

    return expect(what, "")


def create(bootstrap: str, topic: str, partitions: int = 3) -> None:
    with AdminClient(bootstrap) as admin:
        assert admin.create_topics([NewTopic(topic, partitions, 1)]) == {topic: None}


def write(page: Any, topic: str, key: str, value: str, header: tuple[str, str] | None = None) -> None:
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key").fill(key)
    dialog.get_by_role("textbox", name="Value", exact=True).fill(value)
    if header is not None:
        dialog.get_by_label("Header name").fill(header[0])
        dialog.get_by_label("Header value").fill(header[1])
    dialog.get_by_role("button", name="Send").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("status")).to_contain_text("is written to partition")


def test_a_topic_is_created_found_and_deleted(page: Any, topic: str) -> None:
    page.goto("/topics")
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(topic)
    dialog.get_by_label("Partitions").fill("3")
    dialog.get_by_label("Replication factor").fill("1")
    dialog.get_by_label("Settings").fill("retention.ms=86400000\ncleanup.policy=compact")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("status")).to_contain_text(topic)
    page.get_by_role("searchbox", name="Search topics").fill(topic.upper())
    rows = page.get_by_role("table", name="Topics").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first.get_by_role("cell")).to_have_text(["3", "1", "0", re.compile("B$"), "compact"])
    page.wait_for_url(f"**/topics?q={topic.upper()}")
    page.get_by_role("link", name=topic).click()
    page.get_by_role("button", name="Delete topic").click()
    delete = dialog.get_by_role("button", name="Delete")
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox", name="Topic name").fill(topic[:-1])
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox", name="Topic name").fill(topic)
    delete.click()
    expect(page.get_by_role("status")).to_have_text(f"Topic {topic} is deleted.")
    assert page.goto(f"/topics/{topic}").status == 404
    expect(page.get_by_role("alert")).to_contain_text(topic)


def test_a_table_without_rows_is_a_table(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    for path, name in (
        (f"/topics?q=no-{topic}", "Topics"),
        (f"/groups?q=no-{topic}", "Groups"),
        (f"/topics/{topic}/groups", "Groups"),
        (f"/topics/{topic}/messages", "Messages"),
    ):
        page.goto(path)
        table = page.get_by_role("table", name=name, exact=True)
        expect(table).to_be_visible()
        expect(table.locator("tbody tr")).to_have_count(0)
        expect(page.locator("main p.empty")).to_be_visible()
    for path, name in (("/users", "Users"), ("/quotas", "Quotas"), ("/", "Lag verdicts")):
        page.goto(path)
        expect(page.get_by_role("table", name=name)).to_be_visible()


def test_a_refusal_says_why_and_escape_returns_the_focus(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    page.goto("/topics")
    opener = page.get_by_role("button", name="Create topic")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(topic)
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("already exists")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    page.goto(f"/topics/{topic}/messages")
    page.get_by_role("button", name="Keep this filter").click()
    expect(page.get_by_role("alert")).to_contain_text("no filter to keep")
    # An alert about something else does not stay when a dialog opens.
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_records_are_written_read_and_never_executed(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=1)
    page.goto(f"/topics/{topic}/messages")
    write(page, topic, "k0", HOSTILE, ("source", HOSTILE))
    write(page, topic, "k1", '{"amount": 120, "item": {"name": "Tea"}}')
    page.get_by_role("combobox", name="Start").select_option("Beginning")
    page.get_by_role("button", name="Read").click()
    rows = page.get_by_role("table", name="Messages").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text(HOSTILE)
    expect(rows.nth(1)).to_contain_text("Tea")
    rows.nth(1).get_by_role("link", name="1").click()
    expect(page.locator(".tree")).to_contain_text("amount 120")
    page.get_by_role("button", name="Send again, edited").click()
    dialog = page.get_by_role("dialog")
    value = dialog.get_by_role("textbox", name="Value", exact=True)
    expect(value).to_have_value('{"amount": 120, "item": {"name": "Tea"}}')
    value.fill('{"amount": 121}')
    dialog.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status")).to_contain_text("at offset 2")
    assert page.title().startswith(topic)


def test_a_filter_searches_the_whole_topic(page: Any, bootstrap: str, tools: Tools, topic: str) -> None:
    create(bootstrap, topic)
    page.goto(f"/topics/{topic}/messages")
    file = {
        "name": "records.jsonl",
        "mimeType": "application/json",
        "buffer": "\n".join(
            f'{{"key": "k{n}", "value": {{"n": {n}}}, "headers": {{"h": "x{n}"}}}}' for n in range(500)
        ).encode(),
    }
    page.get_by_label("Import").set_input_files(file)
    expect(page.get_by_role("status")).to_have_text("500 records are imported.")
    rows = page.get_by_role("table", name="Messages").locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_label("Filter").fill("X49")
    page.get_by_role("button", name="Read").click()
    expect(rows).to_have_count(11)
    page.get_by_label("Filter").fill("")
    page.get_by_label("Expression").fill('value.n >= 495 and headers.h != "x499"')
    page.get_by_role("button", name="Read").click()
    expect(rows).to_have_count(4)
    expect(page.get_by_role("status")).to_contain_text("4 found in 500 records.")
    page.reload()
    expect(rows).to_have_count(4)
    page.get_by_label("Limit").fill("3")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_role("status")).to_contain_text("the limit is reached")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Continue").click()
    expect(rows).to_have_count(4)
    expect(page.get_by_role("button", name="Continue")).to_be_hidden()
    page.get_by_label("Expression").fill("value.n >>")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_role("alert")).to_contain_text("'>' is not known; the fields of a record are key")
    page.get_by_role("switch", name="Live").check()
    expect(page.get_by_role("switch", name="Live")).not_to_be_checked()
    expect(page.get_by_role("alert")).to_contain_text("is not known")
    page.get_by_label("Expression").fill("")
    page.get_by_label("Filter").fill("x")
    page.get_by_label("Limit").fill("many")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_role("alert")).to_have_text("Number of messages must be a whole number, not many.")


def test_an_interrupted_search_is_not_repeated(page: Any, bootstrap: str, topic: str, console: Any) -> None:
    create(bootstrap, topic, partitions=1)
    console("POST", f"/topics/{topic}/messages/import", b"tea 1\ntea 2\n", kind="text/plain")
    requests = []

    def interrupted(route: Any) -> None:
        requests.append(route)
        text = route.fetch().text()
        assert "event: end" in text
        route.fulfill(content_type="text/event-stream", body=f"retry: 1\n{text.partition('event: end')[0]}")

    page.route("**/messages/search?*", interrupted)
    page.goto(f"/topics/{topic}/messages?filter=tea")
    expect(page.get_by_role("alert")).to_contain_text("connection to the console is lost")
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    expect(page.get_by_role("table", name="Messages").locator("tbody tr")).to_have_count(2)
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("connection to the console is lost")
    assert len(requests) == 2


def test_new_records_appear_while_live(page: Any, bootstrap: str, topic: str, console: Any) -> None:
    create(bootstrap, topic)
    page.goto(f"/topics/{topic}/messages")
    with page.expect_response(re.compile("/follow")):
        page.get_by_role("switch", name="Live").check()
    table = page.get_by_role("table", name="Messages")
    for number in range(100):
        console("POST", f"/topics/{topic}/messages", {"value": f"fresh-{number}"})
        page.wait_for_timeout(100)
        if table.locator("tbody tr").count():
            break
    expect(table).to_contain_text("fresh-")


def test_partitions_and_configuration(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    page.goto(f"/topics/{topic}/partitions")
    rows = page.get_by_role("table", name="Partitions").locator("tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_role("link", name="Configuration").click()
    page.get_by_role("button", name="Edit retention.ms").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value").fill("abc")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("abc")
    dialog.get_by_label("Value").fill("1234567")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("retention.ms")
    row = page.get_by_role("table", name="Configuration").get_by_role("row").filter(has_text="1234567")
    expect(row).to_contain_text("DYNAMIC_TOPIC_CONFIG")
    # The table is a new one, but the focus is where it was.
    expect(page.get_by_role("button", name="Edit retention.ms")).to_be_focused()
    page.get_by_role("button", name="Reset retention.ms").click()
    expect(dialog.get_by_role("heading")).to_have_text("Reset retention.ms to its default?")
    dialog.get_by_role("button", name="Reset").click()
    expect(page.get_by_role("status")).to_contain_text("default")
    expect(row).to_have_count(0)


def test_offsets_are_reset_after_a_preview(page: Any, bootstrap: str, topic: str, console: Any) -> None:
    create(bootstrap, topic, partitions=1)
    for number in range(4):
        assert console("POST", f"/topics/{topic}/messages", {"value": str(number)}).status == 201
    group = f"group-{topic}"
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(4)})
    page.goto(f"/groups/{group}")
    expect(page.get_by_test_id("total-lag")).to_have_text("0")
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    reset = dialog.get_by_role("button", name="Reset")
    expect(reset).to_be_disabled()
    dialog.get_by_role("combobox", name="To").select_option("Shift by")
    dialog.get_by_label("Shift by", exact=True).fill("-3")
    dialog.get_by_role("button", name="Preview").click()
    table = dialog.get_by_role("table", name="New offsets")
    expect(table.locator("tbody tr").first.get_by_role("cell")).to_have_text([topic, "0", "4", "1"])
    reset.click()
    expect(page.get_by_role("status")).to_contain_text(group)
    expect(page.get_by_test_id("total-lag")).to_have_text("3")
    row = page.get_by_role("table", name="Offsets").locator("tbody tr").first
    expect(row).to_contain_text("1")


def test_partitions_are_added_and_a_group_is_deleted(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=1)
    group = f"group-{topic}"
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
    page.goto(f"/topics/{topic}/partitions")
    page.get_by_role("button", name="Add partitions").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Number of partitions").fill("1")
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_have_text("Number of partitions must be at least 2.")
    dialog.get_by_label("Number of partitions").fill("4")
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text(topic)
    expect(page.get_by_role("table", name="Partitions").locator("tbody tr")).to_have_count(4)
    page.goto(f"/groups/{group}")
    page.get_by_role("button", name="Delete group").click()
    delete = dialog.get_by_role("button", name="Delete")
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox", name="Group name").fill(group)
    delete.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
    expect(page.get_by_role("status")).to_have_text(f"Group {group} is deleted.")
    assert page.goto(f"/groups/{group}").status == 404


def test_the_first_page_is_interactive_in_two_seconds(page: Any) -> None:
    page.goto("/topics")
    # Modules have run when this event has ended.
    times = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    assert 0 < times["domContentLoadedEventEnd"] < 2000, times
    page.get_by_role("button", name="Create topic").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()


def test_tables_follow_the_cluster_within_five_seconds(
    page: Any, bootstrap: str, topic: str, console: Any
) -> None:
    create(bootstrap, topic, partitions=1)
    group = f"group-{topic}"
    own = page.context.new_page()
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
        page.goto(f"/topics/{topic}/partitions")
        own.goto(f"/groups?q={topic}")
        rows = page.get_by_role("table", name="Partitions").locator("tbody tr")
        cells = own.get_by_role("table", name="Groups").locator("tbody tr").first.get_by_role("cell")
        expect(rows).to_have_count(1)
        expect(cells).to_have_text(["Classic", "Empty", "0", "OK", "0", "0 s"])
        admin.create_partitions({topic: 3})
        expect(rows).to_have_count(3, timeout=FOLLOWED_MS)
        console("POST", f"/topics/{topic}/messages", {"value": "x", "partition": 0})
        expect(rows.first.get_by_role("cell").nth(4)).to_have_text("1", timeout=FOLLOWED_MS)
        expect(cells.nth(4)).to_have_text("1", timeout=FOLLOWED_MS)
        own.goto(f"/groups/{group}")
        expect(own.get_by_test_id("total-lag")).to_have_text("1")
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1)})
        expect(own.get_by_test_id("total-lag")).to_have_text("0", timeout=FOLLOWED_MS)
        lag = own.get_by_role("table", name="Offsets").locator("tbody tr").first.get_by_role("cell").nth(3)
        expect(lag).to_have_text("0", timeout=FOLLOWED_MS)


def test_a_page_whose_topic_is_deleted_says_so(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    page.goto(f"/topics/{topic}/partitions")
    rows = page.get_by_role("table", name="Partitions").locator("tbody tr")
    expect(rows).to_have_count(3)
    with AdminClient(bootstrap) as admin:
        assert admin.delete_topics([topic]) == {topic: None}
        notice = page.get_by_text("is not in the cluster any more")
        expect(notice).to_be_visible()
        expect(rows).to_have_count(3)
        assert admin.create_topics([NewTopic(topic, 2, 1)]) == {topic: None}
    expect(rows).to_have_count(2)
    expect(notice).to_be_hidden()


def test_the_overview_has_live_charts(page: Any) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    for name in ("Messages in per second", "Bytes in per second"):
        chart = page.get_by_role("img", name=name)
        expect(chart).to_be_visible()
        page.wait_for_function(
            "name => document.querySelector(`[aria-label='${name}']`).dataset.latest",
            arg=name,
            timeout=PATIENCE_MS,
        )


def test_favourite_topics_are_links(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    page.goto("/topics")
    favourites = page.get_by_role("navigation", name="Favourites")
    expect(favourites).to_be_hidden()
    page.goto(f"/topics/{topic}/partitions")
    button = page.get_by_role("button", name="Favourite")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.goto("/topics?q=other")
    favourites.get_by_role("link", name=topic).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(topic)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    page.goto("/topics")
    expect(favourites).to_be_hidden()


def test_scripts_of_a_page_run_once(page: Any, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/topics/{topic}/messages")
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("link", name="Brokers")).to_be_visible()
    loaded = page.evaluate("performance.getEntriesByType('resource').map(each => each.name)")
    assert len([each for each in loaded if "/console.js" in each]) == 1


def test_every_page_fits_a_narrow_screen(page: Any, bootstrap: str, topic: str, console: Any) -> None:
    name = f"{topic}.{'long' * 60}"[:240]
    group = f"group-{'g' * 200}"
    create(bootstrap, name, partitions=1)
    fields = {"key": "k" * 300, "value": '{"v": "' + "x" * 3000 + '"}', "header_name": "h" * 200}
    assert console("POST", f"/topics/{name}/messages", {**fields, "header_value": "w" * 300}).status == 201
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(name, 0): OffsetAndMetadata(0)})
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/topics/{name}/partitions")
    page.get_by_role("button", name="Favourite").click()
    tabs = ("messages", "partitions", "configuration", "groups", "messages/0/0")
    paths = [f"topics/{name}/{tab}" for tab in tabs]
    paths += ["", "topics", f"groups/{group}", "groups", "brokers", "acls", "users", "quotas", "schemas"]
    paths += ["connectors", "pipelines", "sql", f"topics/{name}-no", f"topics?q={name}"]
    paths += [f"brokers/{console('GET', '/brokers').body['brokers'][0]['id']}"]
    wide = {}
    for path in paths:
        page.goto(f"/{path}")
        copy = page.get_by_role("button", name="Copy as")
        if copy.count():
            copy.click()
            expect(copy).to_have_attribute("aria-expanded", "true")
            expect(page.get_by_role("button", name="Copy curl")).to_be_visible()
        page.evaluate("name => { document.getElementById('status').textContent = name }", name)
        wide[path] = page.evaluate("document.documentElement.scrollWidth")
    assert {path: width for path, width in wide.items() if width > 390} == {}
    with AdminClient(bootstrap) as admin:
        admin.delete_groups([group])


def test_on_a_narrow_screen_the_navigation_is_a_menu(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/topics")
    menu = page.get_by_role("button", name="Menu")
    link = page.get_by_role("link", name="Brokers")
    expect(link).to_be_hidden()
    menu.click()
    expect(menu).to_have_attribute("aria-expanded", "true")
    link.click()
    expect(page.get_by_role("table", name="Brokers")).to_contain_text("Online")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_and_their_dialogs_are_accessible(
    page: Any, bootstrap: str, topic: str, scheme: str, console: Any
) -> None:
    create(bootstrap, topic)
    console("POST", f"/topics/{topic}/messages", {"key": "k", "value": '{"a": [1, "x"]}', "partition": 0})
    group = f"group-{topic}"
    with AdminClient(bootstrap) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
    page.emulate_media(color_scheme=scheme)
    paths = ["", "topics", "groups", "brokers", "acls", "users", "quotas", "schemas", "connectors"]
    paths += ["pipelines", "sql", f"groups/{group}", "nowhere"]
    paths += [f"brokers/{console('GET', '/brokers').body['brokers'][0]['id']}"]
    tabs = ("messages", "partitions", "configuration", "groups", "messages/0/0")
    paths += [f"topics/{topic}/{tab}" for tab in tabs]
    if scheme == "dark":
        # Only the colours differ.
        paths = ["", "topics", "brokers", f"topics/{topic}/messages", f"topics/{topic}/configuration"]
    found = {}
    for path in paths:
        page.goto(f"/{path}")
        found[path] = {"": violations(page), **violations_of_dialogs(page)}
    assert {path: each for path, each in found.items() if any(each.values())} == {}


def test_users_and_quotas_are_edited(page: Any, topic: str) -> None:
    user = f"user-{topic[-8:]}"
    page.goto("/users")
    page.get_by_role("button", name="Add user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User").fill(user)
    dialog.get_by_label("Password").fill("secret")
    dialog.get_by_label("Mechanism").select_option("SCRAM-SHA-256")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text(f"User {user} is saved.")
    row = page.get_by_role("table", name="Users").get_by_role("row").filter(has_text=user)
    expect(row).to_contain_text("SCRAM-SHA-256")
    row.get_by_role("button", name=f"Delete {user}").click()
    dialog.get_by_label("User name").fill(user)
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_have_text(f"User {user} is deleted.")
    expect(row).to_have_count(0)
    page.goto("/quotas")
    page.get_by_role("button", name="Set quota").click()
    dialog.get_by_label("User").fill(user)
    dialog.get_by_label("Client id").fill("<default>")
    dialog.get_by_label("Value").fill("1048576")
    dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("table", name="Quotas").get_by_role("row").filter(has_text=user)
    expect(row.get_by_role("cell")).to_contain_text(
        [user, "<default>", "", "producer_byte_rate", "1,048,576"]
    )
    row.get_by_role("button", name="Remove").click()
    expect(dialog.get_by_role("heading")).to_have_text("Remove this quota?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    expect(row.get_by_role("button", name="Remove")).to_be_focused()
    row.get_by_role("button", name="Remove").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_contain_text("removed")
    expect(row).to_have_count(0)
