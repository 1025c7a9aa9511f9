"""The list of topics; creating and deleting one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moldau.client.admin.topic_types import NewTopic
from moldau.console.cluster.snapshot import Topic
from moldau.console.web.call import Call, CopyAs, Done, Page, paged
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.forms import checked_number, confirm_name, parse_settings

PAGE_SIZE: Final = 100
_SORTS: Final[dict[str, Callable[[Topic], Any]]] = {
    "name": lambda topic: topic.name,
    "partitions": lambda topic: (-len(topic.partitions), topic.name),
    "replication": lambda topic: (-topic.replication, topic.name),
    "records": lambda topic: (-(topic.records or 0), topic.name),
    "size": lambda topic: (-(topic.size or 0), topic.name),
    "policy": lambda topic: (topic.policy or "", topic.name),
}


def topic_row(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "internal": topic.internal,
        "partitions": len(topic.partitions),
        "replication": topic.replication,
        "under_replicated": sum(each.under_replicated for each in topic.partitions),
        "records": topic.records,
        "size": topic.size,
        "policy": topic.policy,
    }


async def topics(call: Call) -> Page:
    snapshot = await call.snapshot()
    query = call.query("q").strip().lower()
    internal = call.query("internal") == "on"
    sort = call.query("sort", "name")
    found = [
        each
        for each in snapshot.topics.values()
        if query in each.name.lower() and (internal or not each.internal)
    ]
    found.sort(key=_SORTS.get(sort, _SORTS["name"]))
    number = checked_number(call.query("page", "1"), "Page", least=1, most=1_000_000)
    rows, pages = paged(found, number, PAGE_SIZE)
    data = {
        "topics": [topic_row(each) for each in rows],
        "total": len(found),
        "page": min(number, pages),
        "pages": pages,
    }
    extra = {"q": call.query("q"), "internal": internal, "sort": sort, "columns": tuple(_SORTS)}
    copy = CopyAs(
        tool(call, "kafka-topics", "--list"),
        curl(call),
        admin_script(call, "for name in admin.list_topics():", "    print(name)"),
    )
    return Page("topics", "Topics", data, extra, copy)


async def create_topic(call: Call) -> Done:
    form = await call.form()
    name = form.text("name", "Name")
    topic = NewTopic(
        name,
        form.number("partitions", "Partitions", least=1, most=100_000, default=-1),
        form.number("replication", "Replication factor", least=1, most=32_767, default=-1),
        configs=parse_settings(form.get("settings", "")),
    )
    error = (await call.admin.create_topics([topic]))[name]
    if error is not None:
        raise error
    await call.view.refreshed()
    return Done(f"Topic {name} is created.", call.url("topics"), {"topic": name}, 201)


async def delete_topic(call: Call) -> Done:
    topic = await call.topic()
    confirm_name(await call.form(), "topic", topic.name)
    error = (await call.admin.delete_topics([topic.name]))[topic.name]
    if error is not None:
        raise error
    await call.view.refreshed()
    return Done(f"Topic {topic.name} is deleted.", call.url("topics"))


async def add_partitions(call: Call) -> Done:
    topic = await call.topic()
    form = await call.form()
    count = form.number("count", "Number of partitions", least=len(topic.partitions) + 1, most=100_000)
    error = (await call.admin.create_partitions({topic.name: count}))[topic.name]
    if error is not None:
        raise error
    await call.view.refreshed()
    return Done(f"Topic {topic.name} has {count} partitions.", call.url("topics", topic.name, "partitions"))
