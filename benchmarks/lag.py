"""What a round of the lag monitor costs: CPU of the monitor and of the broker, and memory of the history.

One node has 500 groups with 10 partitions each, without lag. In the figures of the history, every partition
falls behind, which is the most expensive verdict. `python -m benchmarks.lag [GROUPS]`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import tracemalloc

from benchmarks.brokers import Broker, moldau
from benchmarks.processes import cpu_seconds
from benchmarks.workloads import Figures
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AsyncAdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.lag.evaluation.evaluator import LagEvaluator
from moldau.lag.evaluation.observation import CommittedOffset, GroupObservation, Member, Round
from moldau.lag.evaluation.state import LagRules
from moldau.lag.monitor import LagMonitor

GROUPS = 500
PARTITIONS = 10
_TOPICS = 50
_ROUNDS = 20
_COMMITS_IN_FLIGHT = 16


def topic_of(group: int) -> list[TopicPartition]:
    return [TopicPartition(f"lag-{group % _TOPICS}", index) for index in range(PARTITIONS)]


async def rounds(broker: Broker, groups: int) -> Figures:
    """Return the cost of a round against a real node."""
    await _prepare(broker.bootstrap, groups)
    monitor = LagMonitor(broker.bootstrap)
    await monitor.observe()
    own, wall, node = [], [], cpu_seconds(broker.pid)
    for _ in range(_ROUNDS):
        begin, cpu = time.perf_counter(), time.process_time()
        await monitor.observe()
        own.append((time.process_time() - cpu) * 1000)
        wall.append((time.perf_counter() - begin) * 1000)
    broker_ms = (cpu_seconds(broker.pid) - node) * 1000 / _ROUNDS
    await monitor.close()
    return {
        "CPU of the monitor per round, ms": statistics.median(own),
        "duration of a round, ms": statistics.median(wall),
        "CPU of the broker per round, ms": broker_ms,
    }


async def _prepare(bootstrap: str, groups: int) -> None:
    in_flight = asyncio.Semaphore(_COMMITS_IN_FLIGHT)
    async with AsyncAdminClient(bootstrap) as admin:
        new = [
            NewTopic(f"lag-{each}", partitions=PARTITIONS, replication_factor=1) for each in range(_TOPICS)
        ]
        await admin.create_topics(new)

        async def commit(group: int) -> None:
            async with in_flight:
                offsets = dict.fromkeys(topic_of(group), 0)
                checked(await admin.alter_group_offsets(f"group-{group}", offsets))

        await asyncio.gather(*(commit(group) for group in range(groups)))


def memory(groups: int, rules: LagRules) -> Figures:
    """Return the memory of full histories, and the time to judge them."""
    tracemalloc.start()
    evaluator = LagEvaluator(rules)
    for number in range(rules.capacity + 1):
        evaluator.observe(_round(groups, number, rules.interval_ms))
    size = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    begin = time.process_time()
    evaluator.snapshot()
    window = f"window of {rules.window_ms // 1000} s"
    return {
        f"memory, {window}, MB": size,
        f"CPU to judge if all groups are WARN, {window}, ms": (time.process_time() - begin) * 1000,
    }


def _round(groups: int, number: int, interval_ms: int) -> Round:
    ends = {each: 1_000_000 + number * 1000 for topic in range(_TOPICS) for each in topic_of(topic)}
    observed = {}
    for group in range(groups):
        partitions = topic_of(group)
        committed = {each: CommittedOffset(900_000 + number * 900) for each in partitions}
        member = Member(f"member-{group}", "client", "/127.0.0.1", frozenset(partitions))
        name = f"group-{group}"
        observed[name] = GroupObservation(name, "classic", "Stable", committed, (member,))
    return Round(1_700_000_000_000 + number * interval_ms, observed, ends)


def main() -> None:
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else GROUPS
    figures: Figures = {}
    for rules in (LagRules(), LagRules(600_000)):
        figures |= memory(groups, rules)
    with Broker(moldau()) as broker:
        broker.first_start()
        figures |= asyncio.run(rounds(broker, groups))
    print(f"{groups} groups, {PARTITIONS} partitions each")
    for figure, value in figures.items():
        print(f"{figure}: {value:.3g}")


if __name__ == "__main__":
    main()
