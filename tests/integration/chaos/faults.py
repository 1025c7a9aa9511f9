"""Faults, in an order determined by a seed.

Faults occur one after the other, with or without time to recover in between. Most of them leave a majority,
so that the cluster must continue; after the others it must recover.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moldau.testing import Cluster
from tests.integration.chaos.history import History
from tests.integration.chaos.namespaces import NamespaceCluster

Fault = Callable[["Faults"], None]


class Faults:
    def __init__(self, cluster: Cluster | NamespaceCluster, history: History, seed: int) -> None:
        self.cluster = cluster
        self.history = history
        self.random = random.Random(seed)
        self.ids = [node.id for node in cluster.nodes]

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        kinds = list(KINDS)
        while time.monotonic() < deadline:
            kind = self.random.choices(kinds, weights=[KINDS[each] for each in kinds])[0]
            kind(self)
            self.wait(0.0, 2.0)

    def end(self) -> None:
        """End all faults."""
        self.cluster.heal()
        for node in self.cluster.nodes:
            if node.paused:
                node.resume()
            node.start(wait=False)
        for node in self.cluster.nodes:
            node.wait_ready()
        self.cluster.wait_for_brokers(60)
        self.history.note("all faults are over")

    def any_node(self) -> int:
        return self.random.choice(self.ids)

    def wait(self, least: float, most: float) -> None:
        time.sleep(self.random.uniform(least, most))

    @contextmanager
    def fault(self, sentence: str) -> Iterator[None]:
        self.history.note(sentence)
        yield
        self.history.note(f"  over: {sentence}")


def kill(faults: Faults) -> None:
    node = faults.any_node()
    with faults.fault(f"kill -9 of node {node}"):
        faults.cluster.kill(node)
        faults.wait(0.0, 3.0)
        faults.cluster.restart(node)


def kill_twice(faults: Faults) -> None:
    """Kill a node again while it recovers."""
    node = faults.any_node()
    with faults.fault(f"kill -9 of node {node}, and again as it starts"):
        faults.cluster.kill(node)
        faults.cluster.restart(node, wait=False)
        faults.wait(0.1, 0.6)
        faults.cluster.kill(node)
        faults.cluster.restart(node)


def kill_two(faults: Faults) -> None:
    one, two = faults.random.sample(faults.ids, 2)
    with faults.fault(f"kill -9 of nodes {one} and {two}"):
        faults.cluster.kill(one)
        faults.wait(0.0, 0.5)
        faults.cluster.kill(two)
        faults.wait(0.0, 1.5)
        faults.cluster.restart(two, wait=False)
        faults.wait(0.0, 0.5)
        faults.cluster.restart(one)
        faults.cluster.node(two).wait_ready()


def kill_all(faults: Faults) -> None:
    with faults.fault("kill -9 of all nodes"):
        faults.cluster.kill()
        faults.cluster.restart()


def pause(faults: Faults) -> None:
    node = faults.any_node()
    with faults.fault(f"node {node} is paused"):
        faults.cluster.pause(node)
        faults.wait(0.2, 6.0)
        faults.cluster.resume(node)


def isolate(faults: Faults) -> None:
    node = faults.any_node()
    others = [each for each in faults.ids if each != node]
    with faults.fault(f"node {node} is isolated from all others"):
        faults.cluster.partition(node, others)
        faults.wait(0.2, 6.0)
        faults.cluster.heal()


def cut_a_link(faults: Faults) -> None:
    one, two = faults.random.sample(faults.ids, 2)
    one_way = faults.random.random() < 0.5
    with faults.fault(f"no link from node {one} to {two}" + ("" if one_way else ", nor back")):
        faults.cluster.partition(one, two, one_way=one_way)
        faults.wait(0.2, 6.0)
        faults.cluster.heal()


def mute(faults: Faults) -> None:
    """Cut the links of a node in one direction: it receives and cannot send, or the reverse."""
    node = faults.any_node()
    others = [each for each in faults.ids if each != node]
    deaf = faults.random.random() < 0.5
    with faults.fault(f"node {node} " + ("receives nothing" if deaf else "sends nothing")):
        faults.cluster.partition(others if deaf else node, node if deaf else others, one_way=True)
        faults.wait(0.2, 6.0)
        faults.cluster.heal()


def rolling_restart(faults: Faults) -> None:
    with faults.fault("rolling restart"):
        for node in faults.cluster.nodes:
            node.restart()


#: The relative frequency of each fault.
KINDS: dict[Fault, int] = {
    kill: 6,
    kill_twice: 1,
    kill_two: 1,
    kill_all: 1,
    pause: 3,
    isolate: 3,
    cut_a_link: 2,
    mute: 2,
    rolling_restart: 1,
}
