"""A node's memory and file descriptors do not grow under minutes of mixed load.

`MOLDAU_SOAK_SECONDS` sets the duration of the load.
The node is compared after a first period of load, when caches are filled and code is compiled, with
the node after a much longer one, each time when it is idle.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness.clients.soak_load import TOPICS, Load
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.integration.conftest import StartNode

SECONDS = float(os.environ.get("MOLDAU_SOAK_SECONDS", "40"))
CONFIG = {
    "log.initial.task.delay.ms": 200, "log.retention.check.interval.ms": 500, "log.cleaner.backoff.ms": 500,
    "log.segment.delete.delay.ms": 500, "producer.id.expiration.ms": 1000,
    "producer.id.expiration.check.interval.ms": 500, "max.incremental.fetch.session.cache.slots": 50,
    "replica.high.watermark.checkpoint.interval.ms": 500,
}  # fmt: skip
#: Permitted growth of memory, for fragmentation of the allocator.
SPARE_RSS_KB = 16_000


log = logging.getLogger(__name__)


class Held(NamedTuple):
    """The resources of a process, from /proc."""

    rss_kb: int
    descriptors: int
    threads: int
    children: int
    mappings: int

    @classmethod
    def of(cls, pid: int) -> Held:
        process = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return cls(
            rss_kb=int(status["VmRSS"].split()[0]),
            descriptors=len(list((process / "fd").iterdir())),
            threads=int(status["Threads"]),
            children=len((process / f"task/{pid}/children").read_text().split()),
            mappings=len((process / "maps").read_text().splitlines()),
        )


def wait_until_idle(pid: int, logs: Path) -> Held:
    """Wait until deleted files are removed, the cleaner process has exited, and the numbers are stable."""
    eventually(
        lambda: not any(".deleted" in each.name or each.name.endswith("-delete") for each in logs.rglob("*")),
        what="deleted files are removed",
    )
    eventually(lambda: Held.of(pid).children == 0, what="the cleaner has ended")
    last = Held.of(pid)

    def still() -> bool:
        nonlocal last
        before, last = last, Held.of(pid)
        return before[1:] == last[1:]

    eventually(still, every=1.0, what="descriptors, threads and mappings are stable")
    return last


@pytest.mark.timeout(max(180, 3 * SECONDS))
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_load_leaks_neither_memory_nor_descriptors(start_node: StartNode, on_moldau: bool) -> None:
    if not on_moldau:
        pytest.skip("inspects Moldau's process")
    node = start_node(config=CONFIG)
    for topic, config in TOPICS.items():
        create_and_wait(node.bootstrap_servers, topic, 1, config)
    load = Load(node.bootstrap_servers)
    logs = node.data_dir / "logs"
    load.run(SECONDS / 3)
    before = wait_until_idle(node.pid, logs)
    load.run(SECONDS * 2 / 3)
    after = wait_until_idle(node.pid, logs)
    assert not load.failures
    assert min(load.rounds.values()) >= 2 and len(load.rounds) == 8, load.rounds
    log.info("before %s, after %s, rounds %s", before, after, load.rounds)
    said = f"before {before}, after {after}, rounds {load.rounds}"
    # The permanent topics may have a segment more or fewer, each with a log and two indexes.
    assert after.descriptors <= before.descriptors + 12, said
    assert after.threads <= before.threads + 2, said
    assert after.mappings <= before.mappings + 30, said
    assert after.rss_kb <= before.rss_kb + SPARE_RSS_KB, said
