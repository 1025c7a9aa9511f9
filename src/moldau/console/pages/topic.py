"""A topic: partitions, configuration and groups. Its messages have a module of their own."""

from __future__ import annotations

from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigEntry, ConfigResource, ResourceType
from moldau.console.pages.topics import topic_row
from moldau.console.web.call import Call, CopyAs, Done, Page, paged
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.forms import checked_number

PAGE_SIZE: Final = 200


async def partitions(call: Call) -> Page:
    topic = await call.topic()
    number = checked_number(call.query("page", "1"), "Page", least=1, most=1_000_000)
    chosen, pages = paged(topic.partitions, number, PAGE_SIZE)
    rows = [
        {
            "partition": each.index,
            "leader": each.leader,
            "replicas": list(each.replicas),
            "in_sync": list(each.in_sync),
            "start": each.start,
            "end": each.end,
            "size": each.size,
            "under_replicated": each.under_replicated,
        }
        for each in chosen
    ]
    online = {each.id for each in call.view.snapshot.brokers if each.online}
    data = {
        "topic": topic_row(topic),
        "partitions": rows,
        "page": min(number, pages),
        "pages": pages,
    }
    extra = {"brokers": [each.id for each in call.view.snapshot.brokers], "online": online}
    copy = CopyAs(
        tool(call, "kafka-topics", "--describe", "--topic", topic.name),
        curl(call),
        admin_script(call, f"print(admin.describe_topics([{topic.name!r}]))"),
    )
    return Page("topic_partitions", topic.name, data, extra, copy)


async def configuration(call: Call) -> Page:
    topic = await call.topic()
    entries = await describe(call, ConfigResource(ResourceType.TOPIC, topic.name))
    data = {"topic": topic_row(topic), "configuration": [config_row(each) for each in entries]}
    copy = CopyAs(
        tool(
            call,
            "kafka-configs",
            "--describe",
            "--all",
            "--entity-type",
            "topics",
            "--entity-name",
            topic.name,
        ),
        curl(call),
        admin_script(
            call,
            f"resource = ConfigResource(ResourceType.TOPIC, {topic.name!r})",
            "print(admin.describe_configs([resource]))",
            imports=("from moldau.client.admin.configs import ConfigResource, ResourceType",),
        ),
    )
    return Page("topic_configuration", topic.name, data, {}, copy)


async def edit_configuration(call: Call) -> Done:
    topic = await call.topic()
    return await alter(
        call, ConfigResource(ResourceType.TOPIC, topic.name), call.url("topics", topic.name, "configuration")
    )


async def groups(call: Call) -> Page:
    topic = await call.topic()
    rows = []
    for lag in call.view.lag.groups.values():
        own = [each for each in lag.partitions if each.topic == topic.name]
        if own:
            rows.append(
                {
                    "group": lag.group,
                    "state": lag.state,
                    "status": max(each.status for each in own).name,
                    "partitions": len(own),
                    "lag": lag.topic_lags.get(topic.name, 0 if lag.offsets_read else None),
                    "lag_seconds": max(
                        (each.lag_seconds for each in own if each.lag_seconds is not None), default=None
                    ),
                }
            )
    data = {"topic": topic_row(topic), "groups": sorted(rows, key=lambda row: str(row["group"]))}
    copy = CopyAs(
        tool(call, "kafka-consumer-groups", "--describe", "--all-groups"),
        curl(call),
        admin_script(call, "print(admin.list_groups())"),
    )
    return Page("topic_groups", topic.name, data, {}, copy)


async def describe(call: Call, resource: ConfigResource) -> list[ConfigEntry]:
    """Return the configs of a resource with documentation, those that were set first."""
    found = (
        await call.admin.describe_configs([resource], include_synonyms=True, include_documentation=True)
    )[resource]
    if isinstance(found, KafkaError):
        raise found
    return sorted(found, key=lambda each: (each.is_default or "DEFAULT" in each.source.name, each.name))


def config_row(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": None if entry.sensitive else entry.value,
        "source": entry.source.name,
        "sensitive": entry.sensitive,
        "read_only": entry.read_only,
        "own": entry.source.name.startswith("DYNAMIC") and "DEFAULT" not in entry.source.name,
        "documentation": entry.documentation or "",
    }


async def alter(call: Call, resource: ConfigResource, location: str) -> Done:
    """Set a config to the value of the form, or reset it to its default."""
    form = await call.form()
    name = form.text("name", "Name")
    if form.flag("reset"):
        change, message = AlterConfig(name, AlterOperation.DELETE), f"{name} is reset to its default."
    else:
        value = form.get("value", "")
        change = AlterConfig(name, AlterOperation.SET, value)
        message = f"{name} is saved."
    error = (await call.admin.incremental_alter_configs({resource: [change]}))[resource]
    if error is not None:
        raise error
    await call.view.refreshed()
    return Done(message, location)
