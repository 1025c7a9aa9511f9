"""One of the two brokers; every response is recorded under a label."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.schema import Message
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.wire import Wire
from tests.interop.differential.normal import Normal, has_error

CLOSED = "the connection is closed"
NO_ANSWER = "no response within seconds"
_PATIENCE_SECONDS = 10
_MOMENT_SECONDS = 0.25
#: The timestamp of the scenes' records: fixed, so that both brokers store the same bytes.
TIME = 1_700_000_000_000


class Asked(NamedTuple):
    """A call of an API in a version, on the controller or broker listener: success (`good`) or an error."""

    api_key: int
    version: int
    controller: bool
    good: bool


class Line:
    """One of several connections of a scene: requests can be pending on it while others are used."""

    def __init__(self, broker: Broker, controller: bool) -> None:
        self._broker = broker
        self._open: deque[tuple[Message, int, int]] = deque()
        self.controller = controller
        self.wire = broker.new_wire(controller)

    def post(self, request: Message, version: int) -> None:
        self._open.append((request, version, self.wire.post(request, version)))

    def take(self, label: str) -> Any:
        """Read and record the response to the oldest pending request."""
        answer = self.answer()
        self._broker.note(label, answer)
        return answer

    def answer(self) -> Any:
        """Read the response without recording it."""
        request, version, correlation_id = self._open.popleft()
        answer: Any
        try:
            answer = self.wire.answer(request, version, correlation_id)
        except (ConnectionError, TimeoutError) as error:
            answer = NO_ANSWER if isinstance(error, TimeoutError) else CLOSED
        self._broker.record_call(request, version, answer, self.controller)
        return answer

    def ask(self, label: str, request: Message, version: int) -> Any:
        self.post(request, version)
        return self.take(label)

    def call(self, request: Message, version: int) -> Any:
        self.post(request, version)
        return self.answer()

    def waits(self, label: str) -> None:
        """Record whether the response is still pending after a moment."""
        self._broker.note(label, "waits" if self.wire.is_silent_for(_MOMENT_SECONDS) else "does not wait")


class Broker:
    """A connection to a broker and the transcript of its responses. `run` makes topic names unique."""

    def __init__(self, port: int, controller_port: int, run: str) -> None:
        self.run = run
        #: Whether requests without an explicit listener are sent to the controller listener.
        self.at_controller = False
        self.transcript: list[tuple[str, Any]] = []
        self.topic_ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._ports = {False: port, True: controller_port}
        self._normal = Normal(self._names, {port: "the broker", controller_port: "the controller"})
        self._wires: dict[bool, Wire] = {}
        self._lines: list[Line] = []
        #: The calls and whether they succeeded, for the test that checks their completeness.
        self.asked: set[Asked] = set()

    def ask(self, label: str, request: Message, version: int, *, controller: bool | None = None) -> Any:
        """Send a request, record and return the response; a string if there is none."""
        answer = self.call(request, version, controller=controller)
        self.note(label, answer)
        return answer

    def call(self, request: Message, version: int, *, controller: bool | None = None) -> Any:
        """Read the response without recording it."""
        if controller is None:
            controller = self.at_controller
        answer: Any
        try:
            answer = self.wire(controller).call(request, version)
        except (ConnectionError, TimeoutError) as error:
            self._close_wire(controller)
            answer = NO_ANSWER if isinstance(error, TimeoutError) else CLOSED
        self.record_call(request, version, answer, controller)
        return answer

    @property
    def port(self) -> int:
        return self._ports[False]

    @property
    def controller_port(self) -> int:
        return self._ports[True]

    def line(self, *, controller: bool = False) -> Line:
        """Open a connection in addition to the one that `ask` uses."""
        line = Line(self, controller)
        self._lines.append(line)
        return line

    def record_call(self, request: Message, version: int, answer: Any, controller: bool) -> None:
        good = not isinstance(answer, str) and not has_error(answer)
        self.asked.add(Asked(request.API_KEY, version, controller, good))

    def note(self, label: str, answer: Any) -> None:
        self.transcript.append((label, self._normal(answer)))

    def plain(self, value: Any, name: str) -> Any:
        """Return a single value as it would be recorded."""
        return self._normal(value, name)

    def raw(self, label: str, api_key: int, version: int, body: bytes) -> bytes | None:
        """Send any bytes after a request header of version 1 and return the response frame."""
        with Wire(f"127.0.0.1:{self._ports[False]}") as wire:
            wire.send_frame(struct.pack(">hhih", api_key, version, 7, -1) + body)
            frame = wire.read_frame()
        self.note(label, CLOSED if frame is None else "an answer")
        return frame

    def wire(self, controller: bool = False) -> Wire:
        if controller not in self._wires:
            self._wires[controller] = self.new_wire(controller)
        return self._wires[controller]

    def new_wire(self, controller: bool) -> Wire:
        return Wire(f"127.0.0.1:{self._ports[controller]}", timeout=_PATIENCE_SECONDS)

    def _close_wire(self, controller: bool) -> None:
        self._wires.pop(controller).close()

    def close(self) -> None:
        for controller in list(self._wires):
            self._close_wire(controller)
        for line in self._lines:
            line.wire.close()

    # Preparation of scenes.

    def name(self, name: str) -> str:
        return f"{name}-{'at-controller-' if self.at_controller else ''}{self.run}"

    def topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create a topic, wait until all its partitions are served, and return its name in this run."""
        name = self.name(name)
        settings = {"retention.ms": "-1", **(config or {})}
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
        new = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        request = CreateTopicsRequest(topics=[new], timeout_ms=20_000)
        created = self.call(request, 7, controller=False).topics[0]
        if created.error_code != 0:
            raise AssertionError(f"{name} was not created: {created!r}")
        self.knows(name, created.topic_id)
        eventually(lambda: self._served(name, partitions), what=f"{name} is served")
        return name

    def knows(self, name: str, topic_id: bytes) -> None:
        self.topic_ids[name] = topic_id
        self._names[topic_id] = name

    def _served(self, name: str, partitions: int) -> bool:
        asked = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(partitions)]
        topic = ListOffsetsTopic(name=name, partitions=asked)
        answer = self.call(ListOffsetsRequest(replica_id=-1, topics=[topic]), 6, controller=False)
        return all(partition.error_code == 0 for partition in answer.topics[0].partitions)

    def fill(self, topic: str, count: int = 3, *, partition: int = 0, records: int = 2) -> None:
        """Append `count` batches with `records` records each, a second apart."""
        for number in range(count):
            data = batch([(b"k", b"v%d" % n) for n in range(records)], timestamp=TIME + 1000 * number)
            self.put(topic, data, partition=partition)

    def put(self, topic: str, data: bytes, *, partition: int = 0) -> None:
        part = PartitionProduceData(index=partition, records=memoryview(data))
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
        )
        answer = self.call(request, 12, controller=False).responses[0].partition_responses[0]
        if answer.error_code != 0:
            raise AssertionError(f"records for {topic} were refused: {answer!r}")
