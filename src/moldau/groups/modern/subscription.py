"""Subscription counts by topic; they tell whether all members of a group have the same subscription."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

K = TypeVar("K")


class SubscriptionCount(NamedTuple):
    """The number of members that name a topic, and of resolved regular expressions that match it."""

    by_name: int = 0
    by_regex: int = 0


Subscriptions = dict[str, SubscriptionCount]


def count_names(subscriptions: Subscriptions, topics: Iterable[str], change: int) -> None:
    """Add (1) or remove (-1) a member that names these topics."""
    for topic in topics:
        by_name, by_regex = subscriptions.get(topic, SubscriptionCount())
        _set(subscriptions, topic, SubscriptionCount(by_name + change, by_regex))


def count_regex(subscriptions: Subscriptions, topics: Iterable[str], change: int) -> None:
    """Add (1) or remove (-1) a regular expression that matches these topics."""
    for topic in topics:
        by_name, by_regex = subscriptions.get(topic, SubscriptionCount())
        _set(subscriptions, topic, SubscriptionCount(by_name, by_regex + change))


def _set(subscriptions: Subscriptions, topic: str, count: SubscriptionCount) -> None:
    if count.by_name > 0 or count.by_regex > 0:
        subscriptions[topic] = count
    else:
        subscriptions.pop(topic, None)


def count(counts: dict[K, int], key: K | None, change: int) -> None:
    """Change a count; counts of 0 are removed, and None is not counted."""
    if key is None:
        return
    value = counts.get(key, 0) + change
    if value > 0:
        counts[key] = value
    else:
        counts.pop(key, None)


def is_homogeneous(regexes: Mapping[str, int], subscriptions: Subscriptions, members: int) -> bool:
    """Return whether all members subscribe to the same topics: by the same names, or by one expression."""
    if not regexes:
        return all(each.by_name == members for each in subscriptions.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(each.by_regex == 1 and each.by_name == 0 for each in subscriptions.values())
