"""The commands of the Raft scenarios.

voters N ...            start nodes as the voters of a static quorum
dynamic_voters N ...    start nodes as the voters of a dynamic quorum, formatted with this voter set
observer N              start a node that never votes
controller N            start a controller that is not a voter
auto_join N             start a controller that adds itself as a voter
seed N                  select other random timeouts; before all other commands
run MS                  advance the time
await leader            advance the time until there is a leader, and print how long it took
kill N, start N         exit the process (connections break, new ones are refused); start it again
isolate N, reconnect N  drop all messages from and to a node, without breaking its connections
disconnect A B, connect A B   drop all messages between two nodes
suspect_leader N        make N believe that the leader has exited
write N VALUE ...       append records if N is the leader
resign N                resign as the leader
snapshot N OFFSET       replace the records before OFFSET by a snapshot
lose_quorum_state N     delete N's file `quorum-state`
add N, remove N         change the voters, through the leader
upgrade                 upgrade `kraft.version` to 1, through the leader
trace, quiet            start or stop printing messages as they arrive, except fetches
show                    print the role, epoch, log end and high watermark of each node
log N                   print the records in N's log
describe                print the leader's DescribeQuorum view
"""

from __future__ import annotations

from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest, VoteResponse
from moldau.protocol.schema import Message
from moldau.raft.types import ElectionState, ReplicaView
from moldau.raft.voters import DYNAMIC, VoterSet
from tests.harness.worlds.memory_log import Entry
from tests.harness.worlds.raft import (
    CLUSTER,
    RaftNode,
    RaftWorld,
    directory_of,
    endpoint,
    static_voters,
    voter,
)

_AWAIT_LIMIT_MS = 60_000


class RaftCommands:
    def __init__(self) -> None:
        self._world = RaftWorld()
        self._static: VoterSet | None = None
        self._printed: list[str] = []
        self._began_ms = self._world.now_ms

    def run(self, line: str) -> list[str]:
        command, *arguments = line.split()
        self._printed = []
        self._began_ms = self._world.now_ms
        getattr(self, f"_{command}")(*arguments)
        return self._printed

    def _print(self, line: str) -> None:
        self._printed.append(line)

    def _settle(self, node: RaftNode) -> None:
        self._world.settle(node.settings.node_id)

    # Nodes.

    def _seed(self, seed: str) -> None:
        self._world = RaftWorld(int(seed))

    def _voters(self, *ids: str) -> None:
        self._static = static_voters(map(int, ids))
        for each in ids:
            self._world.add(int(each), self._static)
        self._start(*ids)

    def _dynamic_voters(self, *ids: str) -> None:
        voters = VoterSet.of(voter(int(each)) for each in ids)
        for each in ids:
            node = self._add_dynamic(int(each), ids)
            node.history.add(-1, kraft_version=DYNAMIC, voters=voters)
        self._start(*ids)

    def _add_dynamic(self, node_id: int, bootstrap: tuple[str, ...]) -> RaftNode:
        servers = tuple((endpoint(int(each)).host, endpoint(int(each)).port) for each in bootstrap)
        return self._world.add(
            node_id, None, replace(self._world.settings(node_id), bootstrap_servers=servers)
        )

    def _observer(self, node_id: str) -> None:
        settings = replace(self._world.settings(int(node_id)), can_vote=False, endpoints=())
        if self._static is None:
            settings = replace(settings, bootstrap_servers=self._servers())
        self._world.add(int(node_id), self._static, settings)
        self._start(node_id)

    def _auto_join(self, node_id: str) -> None:
        settings = replace(
            self._world.settings(int(node_id)), auto_join=True, bootstrap_servers=self._servers()
        )
        self._world.add(int(node_id), None, settings)
        self._start(node_id)

    def _controller(self, node_id: str) -> None:
        settings = replace(self._world.settings(int(node_id)), bootstrap_servers=self._servers())
        self._world.add(int(node_id), None, settings)
        self._start(node_id)

    def _servers(self) -> tuple[tuple[str, int], ...]:
        return tuple((endpoint(each).host, endpoint(each).port) for each in self._world.nodes)

    # Events.

    def _start(self, *ids: str) -> None:
        for each in ids:
            self._world.start(int(each))

    def _run(self, duration_ms: str) -> None:
        self._world.run(float(duration_ms))

    def _await(self, what: str) -> None:
        began = self._world.now_ms
        while self._world.leader is None and self._world.now_ms - began < _AWAIT_LIMIT_MS:
            self._world.run(1)
        leader = self._world.leader
        named = "none" if leader is None else f"{leader.settings.node_id}"
        self._print(f"{what}: {named} after {self._world.now_ms - began:.0f} ms")

    def _kill(self, node_id: str) -> None:
        self._world.kill(int(node_id))

    def _isolate(self, node_id: str) -> None:
        self._world.disconnected |= {frozenset((int(node_id), other)) for other in self._world.nodes}

    def _reconnect(self, node_id: str) -> None:
        self._world.disconnected = {pair for pair in self._world.disconnected if int(node_id) not in pair}

    def _disconnect(self, one: str, other: str) -> None:
        self._world.disconnected.add(frozenset((int(one), int(other))))

    def _connect(self, one: str, other: str) -> None:
        self._world.disconnected.discard(frozenset((int(one), int(other))))

    def _suspect_leader(self, node_id: str) -> None:
        node = self._world.nodes[int(node_id)]
        node.raft.leader_exited(self._world.now_ms)
        self._settle(node)

    def _write(self, node_id: str, *values: str) -> None:
        node = self._world.nodes[int(node_id)]
        if not node.raft.quorum.is_leader:
            self._print(f"{node_id} is not the leader")
            return
        for value in values:
            node.write(value, self._world.now_ms)
        self._settle(node)

    def _resign(self, node_id: str) -> None:
        node = self._world.nodes[int(node_id)]
        node.raft.resign(self._world.now_ms)
        self._settle(node)

    def _snapshot(self, node_id: str, offset: str) -> None:
        self._world.nodes[int(node_id)].snapshot(int(offset))

    def _lose_quorum_state(self, node_id: str) -> None:
        self._world.nodes[int(node_id)].stored = ElectionState()

    # Voter changes.

    def _add(self, node_id: str) -> None:
        number = int(node_id)
        name, host, port = endpoint(number)
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER,
            timeout_ms=1000,
            voter_id=number,
            voter_directory_id=directory_of(number),
            listeners=[Listener(name=name, host=host, port=port)],
        )
        self._change(request)

    def _remove(self, node_id: str) -> None:
        number = int(node_id)
        self._change(
            RemoveRaftVoterRequest(
                cluster_id=CLUSTER, voter_id=number, voter_directory_id=directory_of(number)
            )
        )

    def _change(self, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
        leader = self._world.leader
        if leader is None:
            self._print("no leader")
            return
        self._world.change_voters(leader.settings.node_id, request, self._on_response)

    def _on_response(self, response: Message) -> None:
        if isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
            message = f": {response.error_message}" if response.error_message else ""
            self._print(f"{self._time()} {ErrorCode(response.error_code).name}{message}")

    def _upgrade(self) -> None:
        leader = self._world.leader
        if leader is None:
            self._print("no leader")
            return
        try:
            leader.raft.upgrade_kraft_version(DYNAMIC, validate_only=False)
        except KafkaError as error:
            self._print(f"{error.code.name}: {error.message}")
        self._settle(leader)

    # Output.

    def _trace(self) -> None:
        self._world.on_message = self._message

    def _quiet(self) -> None:
        self._world.on_message = lambda sender, receiver, message: None

    def _time(self) -> str:
        return f"+{self._world.now_ms - self._began_ms:.0f}"

    def _message(self, sender: int, receiver: int, message: Message) -> None:
        description = _describe_message(message)
        if description is not None:
            self._print(f"{self._time()} {sender} to {receiver}: {description}")

    def _show(self) -> None:
        for node_id, node in sorted(self._world.nodes.items()):
            if not node.is_up:
                self._print(f"{node_id} is down")
                continue
            raft = node.raft
            leader = f" of {raft.quorum.leader_id}" if raft.quorum.leader_id not in (-1, node_id) else ""
            voting = "" if raft.quorum.is_voter else ", not a voter"
            self._print(
                f"{node_id} {raft.quorum.role.name.lower()}{leader}, epoch {raft.quorum.epoch}, "
                f"end {node.log.end.offset}, high watermark {raft.quorum.high_watermark}{voting}"
            )

    def _log(self, node_id: str) -> None:
        log = self._world.nodes[int(node_id)].log
        records = " ".join(f"{record.epoch}:{_value(record)}" for record in log.entries)
        self._print(f"{node_id} from {log.start_offset}: {records}")

    def _describe(self) -> None:
        leader = self._world.leader
        view = None if leader is None else leader.raft.describe(self._world.now_ms)
        if view is None:
            self._print("no leader")
            return
        self._print(f"leader {view.leader_id}, epoch {view.epoch}, high watermark {view.high_watermark}")
        for kind, replicas in (("voter", view.voters), ("observer", view.observers)):
            for replica in sorted(replicas):
                self._print(f"{kind} {replica.key.id}: end {replica.end_offset}{self._caught_up(replica)}")

    def _caught_up(self, replica: ReplicaView) -> str:
        last = replica.last_caught_up_ms
        if last is None:
            return ", never caught up"
        return ", caught up" if self._world.now_ms - last < 1000 else ", behind"


def _value(record: Entry) -> str:
    if isinstance(record.value, VoterSet):
        return f"voters={','.join(map(str, record.value.ids))}"
    return f"kraft.version={record.value}" if isinstance(record.value, int) else str(record.value)


def _describe_message(message: Message) -> str | None:
    if isinstance(message, VoteRequest):
        vote = message.topics[0].partitions[0]
        kind = "PreVote" if vote.pre_vote else "Vote"
        return f"{kind}, epoch {vote.replica_epoch}, log end {vote.last_offset}"
    if isinstance(message, VoteResponse):
        response = message.topics[0].partitions[0]
        if response.error_code:
            return f"rejected, {ErrorCode(response.error_code).name}, epoch {response.leader_epoch}"
        return "granted" if response.vote_granted else "rejected"
    if isinstance(message, BeginQuorumEpochRequest):
        return f"BeginQuorumEpoch, epoch {message.topics[0].partitions[0].leader_epoch}"
    if isinstance(message, EndQuorumEpochRequest):
        ended = message.topics[0].partitions[0]
        return f"EndQuorumEpoch, epoch {ended.leader_epoch}, successors {ended.preferred_successors}"
    if isinstance(message, UpdateRaftVoterRequest):
        return "UpdateRaftVoter"
    if isinstance(message, AddRaftVoterRequest):
        return "AddRaftVoter"
    if isinstance(message, RemoveRaftVoterRequest):
        return "RemoveRaftVoter"
    if isinstance(message, FetchSnapshotResponse):
        partition = message.topics[0].partitions[0]
        end_offset = partition.snapshot_id.end_offset
        return f"FetchSnapshot response, snapshot {end_offset}, position {partition.position}"
    return None
