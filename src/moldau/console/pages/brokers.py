"""Brokers, their disks and settings, and the metadata quorum."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.client.admin.configs import ConfigResource, ResourceType
from moldau.console.cluster.snapshot import Broker, Snapshot
from moldau.console.pages.topic import alter, config_row, describe
from moldau.console.web.call import Call, CopyAs, Done, Page, not_found
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.forms import checked_number


async def brokers(call: Call) -> Page:
    snapshot = await call.snapshot()
    leaders = Counter(each.leader for topic in snapshot.topics.values() for each in topic.partitions)
    replicas = Counter(
        broker for topic in snapshot.topics.values() for each in topic.partitions for broker in each.replicas
    )
    data = {
        "brokers": [_row(each, snapshot, leaders, replicas) for each in snapshot.brokers],
        "quorum": _quorum(snapshot),
    }
    copy = CopyAs(
        tool(call, "kafka-cluster", "list-endpoints", "--include-fenced-brokers"),
        curl(call),
        admin_script(call, "for broker in admin.describe_cluster().nodes:", "    print(broker)"),
    )
    return Page("brokers", "Brokers", data, {}, copy)


async def broker(call: Call) -> Page:
    found = await _broker(call)
    entries = await describe(call, ConfigResource(ResourceType.BROKER, str(found.id))) if found.online else []
    data = {
        "broker": found.id,
        "address": found.address,
        "online": found.online,
        "configuration": [config_row(each) for each in entries],
    }
    copy = CopyAs(
        tool(
            call,
            "kafka-configs",
            "--describe",
            "--all",
            "--entity-type",
            "brokers",
            "--entity-name",
            str(found.id),
        ),
        curl(call),
        admin_script(
            call,
            f'resource = ConfigResource(ResourceType.BROKER, "{found.id}")',
            "print(admin.describe_configs([resource]))",
            imports=("from moldau.client.admin.configs import ConfigResource, ResourceType",),
        ),
    )
    return Page("broker", f"Broker {found.id}", data, {}, copy)


async def edit_broker(call: Call) -> Done:
    found = await _broker(call)
    return await alter(
        call, ConfigResource(ResourceType.BROKER, str(found.id)), call.url("brokers", str(found.id))
    )


async def _broker(call: Call) -> Broker:
    number = checked_number(call.path("broker"), "The id of a broker", least=0, most=2**31 - 1)
    for each in (await call.snapshot()).brokers:
        if each.id == number:
            return each
    raise not_found(f"Broker {number}")


def _row(broker: Broker, snapshot: Snapshot, leaders: Counter[int], replicas: Counter[int]) -> dict[str, Any]:
    return {
        "id": broker.id,
        "address": broker.address,
        "rack": broker.rack,
        "status": "Online" if broker.online else "Offline",
        "controller": broker.id == snapshot.controller_id,
        "leaders": leaders[broker.id],
        "replicas": replicas[broker.id],
        "size": broker.size if broker.online else None,
        "directories": [
            {
                "path": each.path,
                "total": each.total_bytes if each.total_bytes >= 0 else None,
                "free": each.usable_bytes if each.usable_bytes >= 0 else None,
                "error": each.error,
            }
            for each in broker.directories
        ],
    }


def _quorum(snapshot: Snapshot) -> dict[str, Any] | None:
    quorum = snapshot.quorum
    if quorum is None:
        return None
    end = max((each.log_end_offset for each in quorum.voters), default=0)
    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "nodes": [
            {
                "id": each.id,
                "role": "Leader" if each.id == quorum.leader_id else role,
                "log_end": each.log_end_offset,
                "lag": max(end - each.log_end_offset, 0),
            }
            for role, nodes in (("Voter", quorum.voters), ("Observer", quorum.observers))
            for each in nodes
        ],
    }
