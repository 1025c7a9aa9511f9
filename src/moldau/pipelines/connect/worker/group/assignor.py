"""Decides which worker runs which connectors and tasks: incremental and cooperative, as KIP-415 describes.

The leader of the group calls `assign` in every rebalance. Work stays where it is, unless a worker has more
than its share: then the surplus is revoked, and assigned to others in the rebalance that follows the
revocation. The work of a worker that has disappeared waits `scheduled.rebalance.max.delay.ms` for its return,
so that a restart of a worker moves nothing; it is assigned at once if a worker with the same URL joins.

Pure: time is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from moldau.pipelines.connect.storage.types import TaskId
from moldau.pipelines.connect.worker.group.protocol import MemberState, Work

T = TypeVar("T", str, TaskId)


class Plan(NamedTuple):
    """The result of a rebalance, by member id."""

    assigned: dict[str, Work]
    revoked: dict[str, Work]
    #: Milliseconds until the members have to rebalance again; 0 if they need not.
    delay_ms: int


@dataclass(slots=True)
class _Delay:
    """Work that waits for the return of workers."""

    until_ms: int = 0
    urls: set[str] = field(default_factory=set)


class Assignor:
    def __init__(self, max_delay_ms: int) -> None:
        self._max_delay_ms = max_delay_ms
        #: What every URL ran after the last rebalance that this worker has led.
        self._previous: dict[str, Work] = {}
        self._delay = _Delay()

    def forget(self) -> None:
        """Forget the last rebalance: another worker has led since."""
        self._previous = {}
        self._delay = _Delay()

    def assign(self, members: Mapping[str, MemberState], configured: Work, now_ms: int) -> Plan:
        owned = {member: state.owned for member, state in members.items()}
        revoked = _invalid(owned, configured)
        kept = {member: work - revoked[member] for member, work in owned.items()}
        unowned = configured - _union(owned.values())
        waiting = self._waiting(members, unowned, now_ms)
        surplus = {} if self._delay.until_ms else _surplus(kept, configured)
        for member, work in surplus.items():
            kept[member], revoked[member] = kept[member] - work, revoked[member] | work
        assigned = _spread(kept, unowned - waiting)
        self._previous = {state.url: kept[member] | assigned[member] for member, state in members.items()}
        if waiting:
            # It is still that of the lost workers.
            self._previous[""] = waiting
        delay_ms = max(self._delay.until_ms - now_ms, 1) if self._delay.until_ms else 0
        return Plan(assigned, revoked, delay_ms)

    def _waiting(self, members: Mapping[str, MemberState], unowned: Work, now_ms: int) -> Work:
        """Return the work that is not assigned yet, because its worker may return."""
        lost = unowned & _union(self._previous.values())
        if not lost or not self._max_delay_ms:
            self._delay = _Delay()
            return Work()
        urls = {state.url for state in members.values()}
        if not self._delay.until_ms:
            gone = {url for url, work in self._previous.items() if url not in urls and work & lost}
            self._delay = _Delay(now_ms + self._max_delay_ms, gone)
        returned = self._delay.urls and self._delay.urls <= urls
        if now_ms >= self._delay.until_ms or returned:
            self._delay = _Delay()
            return Work()
        return lost


def _union(works: Iterable[Work]) -> Work:
    result = Work()
    for work in works:
        result |= work
    return result


def _invalid(owned: Mapping[str, Work], configured: Work) -> dict[str, Work]:
    """Return the work of each member that does not exist any more, or that several members run."""
    connectors = Counter(each for work in owned.values() for each in work.connectors)
    tasks = Counter(each for work in owned.values() for each in work.tasks)
    several = Work(
        frozenset(each for each, count in connectors.items() if count > 1),
        frozenset(each for each, count in tasks.items() if count > 1),
    )
    return {member: (work - configured) | (work & several) for member, work in owned.items()}


def _surplus(kept: Mapping[str, Work], configured: Work) -> dict[str, Work]:
    """Return what each member has to give up, so that all run about the same number."""
    connectors = _over({each: work.connectors for each, work in kept.items()}, len(configured.connectors))
    tasks = _over({each: work.tasks for each, work in kept.items()}, len(configured.tasks))
    return {each: Work(frozenset(connectors[each]), frozenset(tasks[each])) for each in kept}


def _over(kept: Mapping[str, frozenset[T]], total: int) -> dict[str, list[T]]:
    least, more = divmod(total, len(kept))
    result: dict[str, list[T]] = {}
    for member in sorted(kept, key=lambda each: (-len(kept[each]), each)):
        items = sorted(kept[member])
        allowed = least
        if len(items) > least and more:
            allowed, more = least + 1, more - 1
        result[member] = items[allowed:]
    return result


def _spread(kept: Mapping[str, Work], work: Work) -> dict[str, Work]:
    """Assign work to the members that run least."""
    connectors = _to_least(kept, sorted(work.connectors), lambda each: len(each.connectors))
    tasks = _to_least(kept, sorted(work.tasks), lambda each: len(each.tasks))
    return {each: Work(frozenset(connectors[each]), frozenset(tasks[each])) for each in kept}


def _to_least(
    kept: Mapping[str, Work], items: Sequence[T], load_of: Callable[[Work], int]
) -> dict[str, list[T]]:
    loads = {member: load_of(work) for member, work in kept.items()}
    result: dict[str, list[T]] = {member: [] for member in kept}
    for item in items:
        member = min(loads, key=lambda each: (loads[each], each))
        loads[member] += 1
        result[member].append(item)
    return result
