"""Three nodes under test, each broker and controller, on this machine, with default configurations.

A cluster is ready when a topic with three replicas is created and all replicas of its partitions are in sync.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from pathlib import Path

from benchmarks.brokers import NodeProcess, Software
from benchmarks.processes import cpu_seconds, memory_megabytes
from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC
from moldau.protocol.messages import describe_quorum
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.harness.apache.node import free_port
from tests.harness.wire.requests import METADATA_VERSION
from tests.harness.wire.wire import Wire

NODES = (1, 2, 3)
REPLICAS = 3
_CREATE_VERSION = 7
_QUORUM_VERSION = 1


class ThreeNodes:
    """Nodes in their own folders, which are removed when the context ends."""

    def __init__(self, software: Software) -> None:
        self.name = software.name
        self._software = software
        self.ports = {node: free_port() for node in NODES}
        self._controller_ports = {node: free_port() for node in NODES}
        self._nodes: dict[int, NodeProcess] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def __enter__(self) -> ThreeNodes:
        self._folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        for node in NODES:
            self._nodes[node] = NodeProcess(self._software, self._folder / str(node), self._properties(node))
        return self

    def __exit__(self, *_: object) -> None:
        for node in self._nodes.values():
            node.end(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _properties(self, node: int) -> dict[str, str]:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controller_ports.items())
        broker, controller = self.ports[node], self._controller_ports[node]
        return {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._folder / str(node) / "data"),
        }

    def first_start(self) -> float:
        """Format and start the nodes; return the seconds until a topic with three in-sync replicas exists."""
        begin = time.monotonic()
        for node in self._nodes.values():
            node.format()
        for node in self._nodes.values():
            node.start()
        self.create("first", 3)
        return time.monotonic() - begin

    def end(self, node: int, number: signal.Signals) -> None:
        """Kill a node and wait until its process has exited."""
        self._nodes[node].end(number)

    def start(self, node: int) -> None:
        self._nodes[node].start()

    def running(self) -> list[int]:
        return [number for number, node in self._nodes.items() if node.running]

    def memory(self) -> float:
        return sum(memory_megabytes(self._nodes[node].pid) for node in self.running())

    def cpu(self) -> float:
        return sum(cpu_seconds(self._nodes[node].pid) for node in self.running())

    def create(self, topic: str, partitions: int) -> None:
        begin = time.monotonic()
        while not self._created(topic, partitions):
            for node in self._nodes.values():
                node.check(begin)
            time.sleep(0.02)
        self.wait_in_sync(topic, partitions)

    def _created(self, topic: str, partitions: int) -> bool:
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=REPLICAS)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=5000)
        try:
            with Wire(f"127.0.0.1:{self.ports[1]}", timeout=10) as wire:
                code = wire.call(request, _CREATE_VERSION).topics[0].error_code
        except OSError:
            return False
        return code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    def wait_in_sync(self, topic: str, partitions: int, seconds: float = 120.0) -> None:
        """Wait until every replica of the topic is in sync."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.metadata(self.running()[0], topic)
            replicas = [len(each.isr_nodes) for each in found.topics[0].partitions] if found else []
            if len(replicas) == partitions and all(count == REPLICAS for count in replicas):
                return
            time.sleep(0.02)
        raise TimeoutError(f"{self.name}: not every replica of {topic} is in sync after {seconds} s")

    def metadata(self, node: int, topic: str) -> MetadataResponse | None:
        """Return the metadata of a topic from a node; None if it does not answer."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        try:
            with Wire(f"127.0.0.1:{self.ports[node]}", timeout=5) as wire:
                answer: MetadataResponse = wire.call(request, METADATA_VERSION)
                return answer
        except OSError:
            return None

    def active_controller(self) -> int:
        topic = describe_quorum.RequestTopicData(
            topic_name=METADATA_TOPIC, partitions=[describe_quorum.RequestPartitionData(partition_index=0)]
        )
        with Wire(f"127.0.0.1:{self.ports[self.running()[0]]}", timeout=10) as wire:
            answer = wire.call(describe_quorum.DescribeQuorumRequest(topics=[topic]), _QUORUM_VERSION)
        return int(answer.topics[0].partitions[0].leader_id)
