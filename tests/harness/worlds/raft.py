"""A quorum in memory: `moldau.raft` with logs in memory, a message network and one clock.

The content of records does not matter, except for the voter sets of a dynamic quorum. `RaftNode` is a minimal
driver whose writes are durable at once. Messages take a millisecond; those between `disconnected` nodes are
lost. A killed node refuses connections, and its followers notice, as with real processes.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from moldau.base.ids import Uuid
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.raft.raft import Raft
from moldau.raft.settings import RaftSettings
from moldau.raft.types import Append, ElectionState, FollowerAction, OutboundRequest, Truncate
from moldau.raft.voters import DYNAMIC, STATIC, Voter, VoterEndpoint, VoterHistory, VoterSet
from tests.harness.worlds.memory_log import Entry, MemoryLog

CLUSTER = "test-cluster"
LISTENER = "CONTROLLER"
LATENCY_MS = 1.0
#: The latest version of each request; 1 for the others.
_VERSIONS = {VoteRequest: 2, FetchRequest: 18}


def directory_of(node_id: int, generation: int = 0) -> Uuid:
    return Uuid(bytes([0xD0 + generation] * 15 + [node_id]))


def voter(node_id: int) -> Voter:
    return Voter(node_id, directory_of(node_id), (endpoint(node_id),))


def endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint(LISTENER, f"node-{node_id}", 9093)


def static_voters(node_ids: Iterable[int]) -> VoterSet:
    return VoterSet.of(Voter(each, endpoints=(endpoint(each),), max_kraft_version=0) for each in node_ids)


class RaftNode:
    """A node and its disk: `log`, `stored` and `history` survive a restart."""

    def __init__(self, settings: RaftSettings, static: VoterSet, randomness: random.Random) -> None:
        self.settings = settings
        self.log = MemoryLog()
        self.stored = ElectionState()
        self.static = static
        self.history = VoterHistory(static)
        #: The `kraft.version` and voter set of the snapshot at the log's start.
        self.snapshot_voters: tuple[int, VoterSet | None] = (STATIC, None)
        self.is_up = False
        self._randomness = randomness
        self._led_epoch = -1

    def start(self, now_ms: float) -> None:
        self.is_up = True
        self._led_epoch = -1
        self.raft = Raft(self.settings, self.log, self.stored, self.history, self._randomness, now_ms)

    # Effects.

    def process_ready(self, now_ms: float) -> list[OutboundRequest]:
        """Perform all effects; return the requests to send."""
        requests: list[OutboundRequest] = []
        while True:
            ready = self.raft.take_ready()
            if ready.persist is not None:
                self.stored = ready.persist
            requests += ready.requests
            if ready.voter_change_response is not None:
                self.on_voter_change(ready.voter_change_response)
            if ready.records:
                self._append_control(ready.records, now_ms)
            elif self.raft.quorum.is_leader and self._led_epoch != self.raft.quorum.epoch:
                self._led_epoch = self.raft.quorum.epoch
                self._begin_epoch(now_ms)
            else:
                return requests

    def on_voter_change(self, response: Message) -> None:
        """Receive the response of a finished voter change."""

    def _begin_epoch(self, now_ms: float) -> None:
        self.log.append((Entry(self.raft.quorum.epoch, "leader"),))
        voters = self.raft.quorum.epoch_start_voters
        if voters is not None:
            self._append_voters(DYNAMIC, voters)
        self.raft.appended(now_ms)

    def _append_control(self, records: Iterable[VotersRecord | KRaftVersionRecord], now_ms: float) -> None:
        for record in records:
            if isinstance(record, VotersRecord):
                self._append_voters(None, VoterSet.from_record(record))
            else:
                self._append_voters(record.kraft_version, None)
        self.raft.appended(now_ms)

    def _append_voters(self, kraft_version: int | None, voters: VoterSet | None) -> None:
        for value in (kraft_version, voters):
            if value is not None:
                self.log.append((Entry(self.raft.quorum.epoch, value),))
        self.raft.voters_changed(self.log.end.offset - 1, kraft_version, voters)

    def write(self, value: str, now_ms: float) -> None:
        self.log.append((Entry(self.raft.quorum.epoch, value),))
        self.raft.appended(now_ms)

    def snapshot(self, offset: int) -> None:
        """Replace the records before `offset` by a snapshot."""
        self.snapshot_voters = (
            self.history.kraft_version_at(offset - 1),
            self.history.voters_at(offset - 1) if self.history.voters_offset is not None else None,
        )
        self.log.snapshot(offset)
        self.log.trim()
        self.history.discard_before(offset)

    # Requests and responses.

    def handle(self, request: Message, now_ms: float) -> Message:
        raft, version = self.raft, _VERSIONS.get(type(request), 1)
        match request:
            case (
                VoteRequest() | BeginQuorumEpochRequest() | EndQuorumEpochRequest() | UpdateRaftVoterRequest()
            ):
                return raft.step(request, version, now_ms)
            case FetchSnapshotRequest():
                return self._serve_snapshot(request, version, now_ms)
            case ApiVersionsRequest():
                feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                return ApiVersionsResponse(supported_features=[feature])
        raise AssertionError(f"{type(request).__name__} is not a Raft request")

    def fetch(self, request: FetchRequest, now_ms: float) -> tuple[FetchResponse, bool]:
        """Return the response, with records, and whether it may wait for new ones."""
        answer = self.raft.fetch(request, _VERSIONS[FetchRequest], now_ms)
        if answer.read_from is not None:
            answer.response.responses[0].partitions[0].records = _packed(
                self.log.read(answer.read_from, self.log.end_offset)
            )
        return answer.response, answer.wait

    def _serve_snapshot(
        self, request: FetchSnapshotRequest, version: int, now_ms: float
    ) -> FetchSnapshotResponse:
        response, is_found = self.raft.fetch_snapshot(request, version, now_ms)
        if is_found:
            content = b"snapshot"
            partition = response.topics[0].partitions[0]
            partition.size = len(content)
            partition.unaligned_records = content[partition.position :][:5]
        return response

    def perform(self, action: FollowerAction | None, leader: RaftNode, now_ms: float) -> None:
        if isinstance(action, Append):
            for record in _packages[bytes(action.records)]:
                self.log.append((record,))
                offset = self.log.end.offset - 1
                if isinstance(record.value, VoterSet):
                    self.raft.voters_changed(offset, None, record.value)
                elif isinstance(record.value, int):
                    self.raft.voters_changed(offset, record.value, None)
            self.raft.appended(now_ms)
        elif isinstance(action, Truncate):
            self.log.truncate(action.end_offset)
            self.raft.truncated(now_ms)
        elif action is not None and not action.is_last:
            self.raft.snapshot_chunk_written(now_ms)
        elif action is not None:
            self.log.load(action.snapshot)
            self.snapshot_voters = leader.snapshot_voters
            self.raft.snapshot_loaded(now_ms, *leader.snapshot_voters)


_packages: dict[bytes, tuple[Entry, ...]] = {}


def _packed(records: tuple[Entry, ...]) -> bytes:
    """Return a key to a table instead of encoded records, which Raft does not look at."""
    key = repr(records).encode() if records else b""
    _packages[key] = records
    return key


@dataclass
class _Parked:
    """A fetch that waits for new records."""

    request: FetchRequest
    response: FetchResponse
    deadline: float
    reply: Callable[[FetchResponse], None]
    fail: Callable[[], None]


class RaftWorld:
    def __init__(self, seed: int = 1) -> None:
        self.now_ms = 1000.0
        self.nodes: dict[int, RaftNode] = {}
        self.disconnected: set[frozenset[int]] = set()
        self.randomness = random.Random(seed)
        #: Called with the sender, receiver and message of each arrived message.
        self.on_message: Callable[[int, int, Message], None] = lambda sender, receiver, message: None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._parked: dict[int, list[_Parked]] = {}

    def add(
        self, node_id: int, static: VoterSet | None = None, settings: RaftSettings | None = None
    ) -> RaftNode:
        """Add a node; `static` is the voter set of the configuration, None in a dynamic quorum."""
        chosen = settings or self.settings(node_id)
        node = RaftNode(chosen, VoterSet() if static is None else static, self.randomness)
        self.nodes[node_id] = node
        return node

    def settings(self, node_id: int) -> RaftSettings:
        return RaftSettings(node_id, directory_of(node_id), CLUSTER, LISTENER, (endpoint(node_id),))

    def start(self, node_id: int) -> None:
        self.nodes[node_id].start(self.now_ms)
        self._parked[node_id] = []
        self.settle(node_id)

    def kill(self, node_id: int) -> None:
        """Exit the process: its connections break, and new ones are refused."""
        node = self.nodes[node_id]
        node.is_up = False
        for parked in self._parked[node_id]:
            self.after(LATENCY_MS, parked.fail)
        self._parked[node_id] = []
        for other_id, other in self.nodes.items():
            if (
                other.is_up
                and other.raft.quorum.leader_id == node_id
                and self._is_connected(node_id, other_id)
            ):
                self.after(LATENCY_MS, lambda other_id=other_id: self._notice_exit(other_id, node_id))

    def _notice_exit(self, node_id: int, exited_id: int) -> None:
        node = self.nodes[node_id]
        if node.is_up and node.raft.quorum.leader_id == exited_id and not self.nodes[exited_id].is_up:
            node.raft.leader_exited(self.now_ms)
            self.settle(node_id)

    # Time.

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), act))

    def run(self, duration_ms: float) -> None:
        until = self.now_ms + duration_ms
        while (due := self._next_due()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            if self._events and self._events[0][0] <= self.now_ms:
                heapq.heappop(self._events)[2]()
            else:
                self._tick()
        self.now_ms = until

    def _next_due(self) -> float | None:
        deadlines = [event[0] for event in self._events[:1]]
        for node_id, node in self.nodes.items():
            if node.is_up:
                deadline = node.raft.next_deadline()
                deadlines += [] if deadline is None else [deadline]
                deadlines += [parked.deadline for parked in self._parked[node_id]]
        return min(deadlines, default=None)

    def _tick(self) -> None:
        for node_id, node in self.nodes.items():
            if node.is_up:
                node.raft.tick(self.now_ms)
                self.settle(node_id)

    def settle(self, node_id: int) -> None:
        """Send the requests of a node after an input, and try its waiting fetches again."""
        node = self.nodes[node_id]
        for request in node.process_ready(self.now_ms):
            self._send(node_id, request)
        waiting, self._parked[node_id] = self._parked[node_id], []
        for parked in waiting:
            response, may_wait = node.fetch(parked.request, self.now_ms)
            if may_wait and self.now_ms < parked.deadline:
                self._parked[node_id].append(parked)
            else:
                parked.reply(response)
        if waiting:
            for request in node.process_ready(self.now_ms):
                self._send(node_id, request)

    # Messages.

    def _is_connected(self, one: int, other: int) -> bool:
        return frozenset((one, other)) not in self.disconnected

    def _send(self, sender_id: int, outbound: OutboundRequest) -> None:
        receiver_id = int(outbound.endpoint.host.removeprefix("node-"))
        node = self.nodes[sender_id]
        raft = node.raft

        def fail() -> None:
            if node.is_up and node.raft is raft:
                raft.on_failure(outbound, self.now_ms)
                self.settle(sender_id)

        def receive(response: Message) -> None:
            if node.is_up and node.raft is raft and self._is_connected(sender_id, receiver_id):
                self.on_message(receiver_id, sender_id, response)
                action = raft.on_response(outbound, response, self.now_ms)
                node.perform(action, self.nodes[receiver_id], self.now_ms)
                self.settle(sender_id)

        def reply(response: Message) -> None:
            self.after(LATENCY_MS, lambda: receive(response))

        def arrive() -> None:
            receiver = self.nodes.get(receiver_id)
            if not self._is_connected(sender_id, receiver_id):
                return
            if receiver is None or not receiver.is_up:
                self.after(LATENCY_MS, fail)
                return
            self.on_message(sender_id, receiver_id, outbound.request)
            self._receive(receiver_id, outbound.request, reply, fail)

        self.after(LATENCY_MS, arrive)

    def _receive(
        self, node_id: int, request: Message, reply: Callable[[Message], None], fail: Callable[[], None]
    ) -> None:
        node = self.nodes[node_id]
        if isinstance(request, FetchRequest):
            response, may_wait = node.fetch(request, self.now_ms)
            if may_wait:
                deadline = self.now_ms + request.max_wait_ms
                self._parked[node_id].append(_Parked(request, response, deadline, reply, fail))
            else:
                reply(response)
        elif isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            self.change_voters(node_id, request, reply)
        else:
            reply(node.handle(request, self.now_ms))
        self.settle(node_id)

    def change_voters(
        self,
        node_id: int,
        request: AddRaftVoterRequest | RemoveRaftVoterRequest,
        reply: Callable[[Message], None],
    ) -> None:
        node = self.nodes[node_id]
        node.on_voter_change = reply  # type: ignore[method-assign]
        if isinstance(request, AddRaftVoterRequest):
            answer: Message | None = node.raft.add_voter(request, self.now_ms)
        else:
            answer = node.raft.remove_voter(request, self.now_ms)
        if answer is not None:
            reply(answer)
        self.settle(node_id)

    # State.

    @property
    def leader(self) -> RaftNode | None:
        """The leader of the latest epoch."""
        leaders = [node for node in self.nodes.values() if node.is_up and node.raft.quorum.is_leader]
        return max(leaders, key=lambda node: node.raft.quorum.epoch, default=None)
