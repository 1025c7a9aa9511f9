"""Groups of all types, with their lag, members and offsets; deleting one."""

from __future__ import annotations

from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.admin.group_types import GroupListing
from moldau.client.wire.coordinators import GROUP, coordinator_id
from moldau.console.pages.topology import topology, topology_picture
from moldau.console.web.call import Call, CopyAs, Done, Page, not_found, paged
from moldau.console.web.commands import admin_script, curl, group_script, tool
from moldau.console.web.forms import checked_number, confirm_name
from moldau.lag.collection.batches import Batches
from moldau.lag.collection.groups import Described, Listed, describe_groups
from moldau.lag.documents import partition_document
from moldau.lag.evaluation.observation import CLASSIC, SHARE, STREAMS
from moldau.lag.evaluation.verdicts import GroupLag

PAGE_SIZE: Final = 100
_TOOL: Final = "kafka-consumer-groups"
_TOOLS: Final = {SHARE: "kafka-share-groups", STREAMS: "kafka-streams-groups"}
_SCRIPTS: Final = {
    SHARE: ("share_groups", "share_group_offsets"),
    STREAMS: ("streams_groups", "describe_streams_group"),
}
_OFFSETS_SIZE: Final = 200
_MAX_MEMBERS: Final = 500
_POINTS: Final = 300


async def groups(call: Call) -> Page:
    snapshot = await call.snapshot()
    query = call.query("q").strip().lower()
    found = [each for each in snapshot.groups.values() if query in each.group_id.lower()]
    if call.query("sort") == "lag":
        found.sort(key=lambda each: -(_total(call.view.lag.groups.get(each.group_id)) or 0))
    number = checked_number(call.query("page", "1"), "Page", least=1, most=1_000_000)
    rows, pages = paged(found, number, PAGE_SIZE)
    data = {
        "groups": [_row(each, call.view.lag.groups.get(each.group_id)) for each in rows],
        "total": len(found),
        "page": min(number, pages),
        "pages": pages,
    }
    copy = CopyAs(
        tool(call, "kafka-groups", "--list"),
        curl(call),
        admin_script(call, "for group in admin.list_groups():", "    print(group)"),
    )
    return Page("groups", "Groups", data, {"q": call.query("q")}, copy)


async def group(call: Call) -> Page:
    listing = await group_listing(call)
    name = listing.group_id
    lag = call.view.lag.groups.get(name)
    offsets = [] if lag is None else sorted(lag.partitions, key=lambda each: (each.topic, each.partition))
    number = checked_number(call.query("page", "1"), "Page", least=1, most=1_000_000)
    shown, pages = paged(offsets, number, _OFFSETS_SIZE)
    members = await _members(call, listing)
    data: dict[str, Any] = {
        **_row(listing, lag),
        "offsets": [partition_document(each) for each in shown],
        "partitions": len(offsets),
        "page": min(number, pages),
        "pages": pages,
        "members": members[:_MAX_MEMBERS],
        "lag_history": call.view.history.lag_of(name)[-_POINTS:],
    }
    extra: dict[str, Any] = {"picture": None, "hidden_members": max(len(members) - _MAX_MEMBERS, 0)}
    if listing.type.lower() == STREAMS:
        data["topology"] = await topology(call, name)
        extra["picture"] = topology_picture(call, data["topology"])
    return Page("group", name, data, extra, _copy(call, listing))


def _copy(call: Call, listing: GroupListing) -> CopyAs:
    kind, name = listing.type.lower(), listing.group_id
    script = admin_script(call, f"print(admin.list_group_offsets({name!r}))")
    if kind in _SCRIPTS:
        module, function = _SCRIPTS[kind]
        script = group_script(call, f"moldau.client.admin.{module}", function, name)
    return CopyAs(tool(call, _TOOLS.get(kind, _TOOL), "--describe", "--group", name), curl(call), script)


async def delete_group(call: Call) -> Done:
    listing = await group_listing(call)
    name = listing.group_id
    confirm_name(await call.form(), "group", name)
    error = (await call.admin.delete_groups([name]))[name]
    if error is not None:
        raise error
    await call.view.refreshed()
    return Done(f"Group {name} is deleted.", call.url("groups"))


async def group_listing(call: Call) -> GroupListing:
    """Return the group of the path; refresh once if it is not known, then 404."""
    name = call.path("group")
    found = (await call.view.watch()).groups.get(name)
    if found is None:
        found = (await call.view.refreshed()).groups.get(name)
    if found is None:
        raise not_found(f"Group {name}")
    return found


async def _members(call: Call, listing: GroupListing) -> list[dict[str, Any]]:
    """Describe the members; none if the coordinator does not answer."""
    name = listing.group_id

    async def ask() -> object:
        node = await coordinator_id(call.view.cluster, GROUP, name)
        listed = Listed(name, listing.type.lower() or CLASSIC, listing.state, node)
        return (await describe_groups(call.view.cluster, Batches(), [listed]))[name]

    try:
        found = await call.view.shared.get(("members", name), ask)
    except KafkaError:
        return []
    if not isinstance(found, Described):
        return []
    return [
        {
            "member_id": each.member_id,
            "client_id": each.client_id,
            "host": each.host,
            "partitions": [[at.topic, at.partition] for at in sorted(each.partitions)],
        }
        for each in sorted(found.members, key=lambda each: each.member_id)
    ]


def _total(lag: GroupLag | None) -> int | None:
    return None if lag is None else lag.total_lag


def _row(listing: GroupListing, lag: GroupLag | None) -> dict[str, Any]:
    return {
        "group": listing.group_id,
        "type": listing.type or "Classic",
        "state": listing.state if lag is None else lag.state,
        "protocol_type": listing.protocol_type,
        "member_count": 0 if lag is None else lag.members,
        "total_lag": _total(lag),
        "lag_seconds": None if lag is None else lag.lag_seconds,
        "status": None if lag is None else lag.status.name,
        "reason": None if lag is None else lag.reason,
        "judged": lag is not None and lag.judged,
    }
