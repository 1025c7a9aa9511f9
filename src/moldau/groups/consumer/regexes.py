"""The topics that a group's regular expressions match have been found: make them part of the group."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.groups.consumer.change import GroupChange
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.records import regex_record
from moldau.groups.modern.regex import UNRESOLVED, ResolvedRegex
from moldau.groups.modern.subscription import count_regex


def take_resolved(parts: ConsumerParts, change: GroupChange, resolved: Mapping[str, ResolvedRegex]) -> None:
    """Every expression that somebody still subscribes with is stored, so that its age is known; the group's
    epoch rises only if its topics have changed."""
    group = change.group
    subscriptions = dict(group.subscriptions)
    bump = False
    for regex, found in resolved.items():
        if regex not in group.regexes:
            continue
        known = group.resolved_regexes.get(regex, UNRESOLVED)
        if known.topics != found.topics:
            bump = True
            count_regex(subscriptions, known.topics, -1)
            count_regex(subscriptions, found.topics, 1)
        change.records.append(regex_record(group.group_id, regex, found))
    metadata_hash = parts.hashes.of_topics(subscriptions, parts.context.image)
    if bump or metadata_hash != group.metadata_hash:
        change.bump(metadata_hash)
        change.refreshed()
    change.regexes_resolved()
