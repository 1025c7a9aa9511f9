"""The cost of metadata at scale: images, snapshots, and the controller's work when a node dies and returns.

    python -m benchmarks.scale.metadata [--nodes 100] [--partitions 10000,50000,100000]

The controller, the records and the images are the real ones; no node runs. Every size is measured in its own
process. Memory is the growth of the process when it loads a snapshot, like a broker does.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from moldau.controller.partitions.isr import alter_partition
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.image_records import image_records
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.quorum.batches import data_batch, read_batches
from tests.unit.controller.harness import Cluster

PARTITIONS_PER_TOPIC = 100
REPLICAS = 3
_RECORDS_PER_BATCH = 2000
_SESSION_MS = 60_000
#: The largest number of partitions in an AlterPartition request.
_PARTITIONS_PER_REQUEST = 500
_HEARTBEAT_MS = 2000

T = TypeVar("T")
Figures = dict[str, float]


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result and the CPU time in ms, which other processes affect less than wall time."""
    begin = time.process_time()
    result = work()
    return result, (time.process_time() - begin) * 1e3


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Scale:
    """A controller with many brokers and partitions, and a metadata loader like that of a broker."""

    def __init__(self, nodes: int, partitions: int) -> None:
        self.nodes = nodes
        self.partitions = partitions
        self.figures: Figures = {"partitions": partitions, "nodes": nodes}

    def measure(self) -> Figures:
        cluster, created_ms = timed(self._create)
        self.cluster = cluster
        self.figures["create all, s"] = created_ms / 1e3
        snapshot = self._write_snapshot()
        self._load(snapshot)
        self._one_change()
        self._die()
        self._return()
        self._heartbeats()
        return self.figures

    def _create(self) -> Cluster:
        cluster = Cluster(range(1, self.nodes + 1), default_replication_factor=REPLICAS)
        for number in range(self.partitions // PARTITIONS_PER_TOPIC):
            created = cluster.create(f"topic-{number:06d}", PARTITIONS_PER_TOPIC, REPLICAS)
            assert created.error_code == 0, created.error_message
        return cluster

    def _bytes(self, records: list[MetadataRecord]) -> list[bytearray]:
        version = self.cluster.controller.state.metadata_version
        batches = []
        for first in range(0, len(records), _RECORDS_PER_BATCH):
            part = records[first : first + _RECORDS_PER_BATCH]
            batches.append(data_batch([encode_record(each, version) for each in part], first, 1, 0))
        return batches

    def _write_snapshot(self) -> list[bytearray]:
        image = self.cluster.controller.image
        batches, took = timed(lambda: self._bytes(list(image_records(image))))
        self.figures["write a snapshot, s"] = took / 1e3
        self.figures["snapshot, MB"] = sum(map(len, batches)) / 1e6
        return batches

    def _load(self, snapshot: list[bytearray]) -> None:
        gc.collect()
        before = resident_bytes()

        def load() -> MetadataImage:
            loader = MetadataLoader()
            for data in snapshot:
                for batch in read_batches(data):
                    loader.replay(batch.records, batch.header.base_offset, 1)
            return loader.publish()[1]

        self.image, took = timed(load)
        gc.collect()
        self.figures["load and replay it, s"] = took / 1e3
        self.figures["memory of the image, MB"] = (resident_bytes() - before) / 1e6

    def _publish(self, records: list[MetadataRecord]) -> float:
        """Return the milliseconds a broker needs to publish an image with these records."""

        def follow() -> MetadataImage:
            delta = MetadataDelta(self.image)
            delta.replay_all(records)
            return delta.apply(self.image.offset + len(records), 1)

        self.image, took = timed(follow)
        return took

    def _one_change(self) -> None:
        took = []
        for number in range(20):
            self.cluster.create(f"one-more-{number}", 1, REPLICAS)
            took.append(self._publish(self.cluster.records))
        self.figures["publish one new topic, ms"] = sorted(took)[len(took) // 2]

    def _note(self, what: str, records: list[MetadataRecord], decided_ms: float) -> None:
        sent = sum(map(len, self._bytes(records)))
        self.figures[f"{what}: records"] = len(records)
        self.figures[f"{what}: decide and replay, ms"] = decided_ms
        self.figures[f"{what}: bytes to each node, MB"] = sent / 1e6
        self.figures[f"{what}: publish on a broker, ms"] = self._publish(records)

    def _die(self) -> None:
        """Let the session of the last broker expire while all others send heartbeats."""
        cluster = self.cluster
        cluster.now += _SESSION_MS
        for broker in range(1, self.nodes):
            cluster.heartbeat(broker)
        records: list[MetadataRecord] = []

        def fence() -> None:
            while cluster.run(cluster.controller.run_periodic_task(cluster.now)):
                records.extend(cluster.records)

        _, took = timed(fence)
        assert cluster.controller.image.cluster.brokers[self.nodes].fenced
        self._note("a node dies", records, took)

    def _return(self) -> None:
        """Register the broker again, unfence it, and add it to every ISR by requests of the leaders."""
        cluster, node = self.cluster, self.nodes
        records: list[MetadataRecord] = []

        def come_back() -> None:
            cluster.register(node, incarnation=2)
            records.extend(cluster.records)
            cluster.unfence(node)
            records.extend(cluster.records)

        _, took = timed(come_back)
        self._note("it returns", records, took)
        records.clear()
        asked, took = timed(lambda: self._grow(records))
        self._note("it is in sync again", records, took)
        self.figures["it is in sync again: requests"] = asked

    def _grow(self, records: list[MetadataRecord]) -> int:
        by_leader: dict[int, list[tuple[bytes, int]]] = {}
        topics = self.cluster.controller.image.topics
        for topic in topics.by_id.values():
            for index, partition in topic.partitions.items():
                if self.nodes in partition.replicas and self.nodes not in partition.isr:
                    by_leader.setdefault(partition.leader, []).append((topic.id, index))
        asked = 0
        for leader, lacking in by_leader.items():
            for first in range(0, len(lacking), _PARTITIONS_PER_REQUEST):
                self._alter(leader, lacking[first : first + _PARTITIONS_PER_REQUEST])
                records.extend(self.cluster.records)
                asked += 1
        return asked

    def _alter(self, leader: int, lacking: list[tuple[bytes, int]]) -> None:
        cluster = self.cluster
        by_id = cluster.controller.image.topics.by_id
        topics: dict[bytes, RequestTopicData] = {}
        for topic_id, index in lacking:
            partition = by_id[topic_id].partitions[index]  # type: ignore[index]
            grown = [
                BrokerState(broker_id=each, broker_epoch=cluster.epoch(each))
                for each in (*partition.isr, self.nodes)
            ]
            data = RequestPartitionData(
                partition_index=index,
                leader_epoch=partition.leader_epoch,
                new_isr_with_epochs=grown,
                partition_epoch=partition.partition_epoch,
            )
            topics.setdefault(topic_id, RequestTopicData(topic_id=topic_id, partitions=[])).partitions.append(
                data
            )  # type: ignore[arg-type]
        request = AlterPartitionRequest(
            broker_id=leader, broker_epoch=cluster.epoch(leader), topics=list(topics.values())
        )
        cluster.decide(alter_partition, request)

    def _heartbeats(self) -> None:
        rounds = 20
        _, took = timed(
            lambda: [
                self.cluster.heartbeat(broker) for _ in range(rounds) for broker in range(1, self.nodes + 1)
            ]
        )
        self.figures["heartbeats of all nodes, ms of work per second"] = took / rounds / (_HEARTBEAT_MS / 1e3)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=100)
    arguments.add_argument("--partitions", default="10000,50000,100000")
    arguments.add_argument(
        "--here", action="store_true", help="measure one size in this process and print JSON"
    )
    options = arguments.parse_args()
    sizes = [int(each) for each in options.partitions.split(",")]
    if options.here:
        print(json.dumps(Scale(options.nodes, sizes[0]).measure()))
        return
    columns = []
    for size in sizes:
        command = [sys.executable, "-m", __spec__.name, "--here", "--nodes", str(options.nodes)]
        output = subprocess.run(
            [*command, "--partitions", str(size)], check=True, capture_output=True, text=True
        )
        columns.append(json.loads(output.stdout))
    print("| | " + " | ".join(f"{size:,} partitions" for size in sizes) + " |")
    print("|---|" + "---:|" * len(sizes))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(f"{column[name]:,.4g}" for column in columns) + " |")


if __name__ == "__main__":
    main()
