"""A group and its topics with virtual time, for the scenario scripts of consumer lag.

window 60 10              judge over 60 s, a round every 10 s; allowed=N, minimum=FRACTION
topic orders 2            create a topic; again: with a new topic id
add orders                add a partition
delete orders             delete a topic, and the offsets of the group
member m1 orders-0 ...    a member joins with these partitions, or gets others; `leave m1`
rebalance PreparingRebalance  the state of the group
produce orders-0 100      append records
commit orders-0 100       commit an offset
expire orders-0           delete a committed offset
retain orders-0 100       delete the records before an offset
quota client-id=c-m1 1000 limit a client id; `user=alice`, `user=alice,client-id=`: the default
unavailable orders-0      its leader does not answer; `available orders-0`
unreadable orders-0       its committed offset cannot be read; `readable orders-0`
missing orders            the broker does not know the topic; `known orders`
denied                    the offsets of the group cannot be read; `allowed`
gone                      the group is not listed any more
rounds 6 orders-0 +10 -5  observe; before each round 10 records arrive and 5 are consumed
show                      print the verdicts
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.base.ids import TopicPartition, Uuid
from moldau.lag.evaluation.evaluator import LagEvaluator
from moldau.lag.evaluation.observation import CommittedOffset, GroupObservation, Member, Round
from moldau.lag.evaluation.state import LagRules
from moldau.lag.evaluation.verdicts import PartitionLag

GROUP = "billing"


class LagWorld:
    def __init__(self) -> None:
        self.interval_ms = 10_000
        self.evaluator = LagEvaluator(LagRules())
        self.now_ms = 1_000_000
        self.ends: dict[TopicPartition, int] = {}
        self.starts: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self.deleted: set[str] = set()
        self.unreachable: set[TopicPartition] = set()
        self.unread: set[TopicPartition] = set()
        self.members: dict[str, Member] = {}
        self.quotas: dict[tuple[str | None, str | None], float] = {}
        self.state = "Stable"
        self.error: str | None = None
        self.listed = True

    def run(self, command: str) -> list[str]:
        name, *words = command.split()
        action: Callable[..., list[str] | None] = getattr(self, name)
        return action(*words) or []

    def window(self, seconds: str, interval: str, *more: str) -> None:
        options = dict(word.split("=") for word in more)
        self.interval_ms = int(interval) * 1000
        rules = LagRules(
            int(seconds) * 1000,
            self.interval_ms,
            int(options.get("allowed", 0)),
            float(options.get("minimum", 1)),
        )
        self.evaluator = LagEvaluator(rules)

    def topic(self, name: str, partitions: str) -> None:
        self.delete(name)
        self.deleted.discard(name)
        self.topic_ids[name] = Uuid(len(self.topic_ids).to_bytes(8, "big") + self.now_ms.to_bytes(8, "big"))
        for index in range(int(partitions)):
            self.ends[TopicPartition(name, index)] = 0

    def add(self, name: str) -> None:
        self.ends[TopicPartition(name, sum(each.topic == name for each in self.ends))] = 0

    def delete(self, name: str) -> None:
        self.deleted.add(name)
        self.topic_ids.pop(name, None)
        for offsets in (self.ends, self.starts, self.committed):
            for partition in [each for each in offsets if each.topic == name]:
                del offsets[partition]

    def member(self, name: str, *partitions: str) -> None:
        if self.state == "Empty":
            self.state = "Stable"
        self.members[name] = Member(name, f"c-{name}", "/10.0.0.1", frozenset(map(_partition, partitions)))

    def leave(self, name: str) -> None:
        del self.members[name]
        if not self.members:
            self.state = "Empty"

    def rebalance(self, state: str) -> None:
        self.state = state

    def produce(self, partition: str, count: str) -> None:
        self.ends[_partition(partition)] += int(count)

    def commit(self, partition: str, offset: str) -> None:
        self.committed[_partition(partition)] = int(offset)

    def expire(self, partition: str) -> None:
        del self.committed[_partition(partition)]

    def retain(self, partition: str, offset: str) -> None:
        self.starts[_partition(partition)] = int(offset)

    def quota(self, entity: str, limit: str) -> None:
        names = dict(each.split("=") for each in entity.split(","))
        self.quotas[names.get("user"), names.get("client-id")] = float(limit)

    def unavailable(self, partition: str) -> None:
        self.unreachable.add(_partition(partition))

    def available(self, partition: str) -> None:
        self.unreachable.discard(_partition(partition))

    def unreadable(self, partition: str) -> None:
        self.unread.add(_partition(partition))

    def readable(self, partition: str) -> None:
        self.unread.discard(_partition(partition))

    def missing(self, topic: str) -> None:
        self.deleted.add(topic)

    def known(self, topic: str) -> None:
        self.deleted.discard(topic)

    def denied(self) -> None:
        self.error = "The client is not authorized for this operation on the group."

    def allowed(self) -> None:
        self.error = None

    def gone(self) -> None:
        self.listed = False

    def rounds(self, count: str, *words: str) -> None:
        """Each partition is followed by what happens before each round: `+N` arrive, `-N` are consumed."""
        steps: list[tuple[TopicPartition, int]] = []
        partition = None
        for word in words:
            if word[0] in "+-":
                assert partition is not None
                steps.append((partition, int(word)))
            else:
                partition = _partition(word)
        for _ in range(int(count)):
            self.now_ms += self.interval_ms
            for at, change in steps:
                if change >= 0:
                    self.ends[at] += change
                else:
                    self.committed[at] = min(self.committed.get(at, 0) - change, self.ends[at])
            self.evaluator.observe(self._round())

    def show(self) -> list[str]:
        snapshot = self.evaluator.snapshot()
        lines = []
        for name, group in snapshot.groups.items():
            error = f" error: {group.error}" if group.error else ""
            lines.append(
                f"{name} {group.status.name} lag={group.total_lag} complete={group.complete:.2f}"
                f" ({group.state}, {group.members} members){error}"
            )
            lines += [_line(each) for each in group.partitions]
            if group.reason:
                lines.append(f"  {group.reason}")
        return lines or ["no groups"]

    def _round(self) -> Round:
        committed = {
            at: CommittedOffset(offset) for at, offset in self.committed.items() if at not in self.unread
        }
        group = GroupObservation(
            GROUP,
            "classic",
            self.state,
            None if self.error else committed,
            tuple(self.members.values()),
            error=self.error,
            unread=frozenset(self.unread & self.committed.keys()),
        )
        return Round(
            self.now_ms,
            {GROUP: group} if self.listed else {},
            {
                at: end
                for at, end in self.ends.items()
                if at not in self.unreachable and at.topic not in self.deleted
            },
            {at: self.starts.get(at, 0) for at in self.ends},
            {name: each for name, each in self.topic_ids.items() if name not in self.deleted},
            frozenset(self.deleted),
            self.quotas,
        )


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def _line(lag: PartitionLag) -> str:
    seconds = "?" if lag.age is None else f"{'' if lag.age.exact else '>'}{lag.age.ms / 1000:g}"
    judged = lag.status.name if lag.judged else "-"
    return f"  {lag.topic}-{lag.partition} {judged} committed={lag.committed} lag={lag.lag} seconds={seconds}"
