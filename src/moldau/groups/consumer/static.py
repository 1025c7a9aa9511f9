"""A static member that comes back under another member id takes its former self's place in the group."""

from __future__ import annotations

import logging
from dataclasses import replace

from moldau.groups.assignors.spec import NOTHING
from moldau.groups.consumer.change import GroupChange
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.records import current_record, member_record, member_tombstones, target_record

log = logging.getLogger(__name__)


def take_place(change: GroupChange, former: ConsumerMember, member_id: str) -> ConsumerMember:
    """What was its former self's, partitions and target, is its own; only its epoch begins anew."""
    group, group_id = change.group, change.group.group_id
    member = replace(former, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    change.records += member_tombstones(group_id, former.member_id)
    change.records.append(member_record(group_id, member))
    change.records.append(target_record(group_id, member_id, group.targets.get(former.member_id, NOTHING)))
    change.records.append(current_record(group_id, member))
    if former.member_id != member_id:
        change.forget_timers(former.member_id)
    log.info("static member %s of group %s is back as %s", former.instance_id, group_id, member_id)
    return member
