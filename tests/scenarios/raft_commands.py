"""The commands of scenarios about the metadata quorum.

voters N ...           nodes that vote, as their configuration says; they start
formatted N ...        nodes that vote, as their folders were formatted to (a dynamic quorum); they start
observer N             a node that follows and never votes
joiner N               a controller that does not vote yet and asks to
seed N                 other random timeouts, before anything else
run MS                 time passes
until leader           time passes until somebody leads, with how long it took
kill N, start N        the process ends (its connections break, new ones are refused); begins again
freeze N, thaw N       nobody reaches it any more, nor it anybody, and nobody notices
cut A B, mend A B      one link
stale N                N takes its leader for dead, though it is not
write N VALUE ...      records, if N leads
resign N
snapshot N OFFSET      everything before OFFSET goes into a snapshot
forget N               N's file `quorum-state` is lost
add N, remove N        change the voters, through the leader
upgrade                `kraft.version` 1, through the leader
trace, quiet           messages are printed as they arrive, but not fetches
show                   every node: its role, epoch, log end, high watermark
log N                  what N's log holds
describe               what the leader says of the quorum
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

_TOO_LONG_MS = 60_000


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

    # Who is there.

    def _seed(self, seed: str) -> None:
        self._world = RaftWorld(int(seed))

    def _voters(self, *ids: str) -> None:
        self._static = static_voters(map(int, ids))
        for each in ids:
            self._world.add(int(each), self._static)
        self._start(*ids)

    def _formatted(self, *ids: str) -> None:
        voters = VoterSet.of(voter(int(each)) for each in ids)
        for each in ids:
            node = self._dynamic(int(each), ids)
            node.history.add(-1, kraft_version=DYNAMIC, voters=voters)
        self._start(*ids)

    def _dynamic(self, node_id: int, bootstrap: tuple[str, ...]) -> RaftNode:
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

    def _joiner(self, node_id: str) -> None:
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

    # What happens.

    def _start(self, *ids: str) -> None:
        for each in ids:
            self._world.start(int(each))

    def _run(self, duration_ms: str) -> None:
        self._world.run(float(duration_ms))

    def _until(self, what: str) -> None:
        began = self._world.now_ms
        while self._world.leader is None and self._world.now_ms - began < _TOO_LONG_MS:
            self._world.run(1)
        leader = self._world.leader
        named = "nobody" if leader is None else f"{leader.settings.node_id}"
        self._print(f"{what}: {named} after {self._world.now_ms - began:.0f} ms")

    def _kill(self, node_id: str) -> None:
        self._world.kill(int(node_id))

    def _freeze(self, node_id: str) -> None:
        self._world.cuts |= {frozenset((int(node_id), other)) for other in self._world.nodes}

    def _thaw(self, node_id: str) -> None:
        self._world.cuts = {cut for cut in self._world.cuts if int(node_id) not in cut}

    def _cut(self, one: str, other: str) -> None:
        self._world.cuts.add(frozenset((int(one), int(other))))

    def _mend(self, one: str, other: str) -> None:
        self._world.cuts.discard(frozenset((int(one), int(other))))

    def _stale(self, node_id: str) -> None:
        node = self._world.nodes[int(node_id)]
        node.raft.leader_exited(self._world.now_ms)
        self._settle(node)

    def _write(self, node_id: str, *values: str) -> None:
        node = self._world.nodes[int(node_id)]
        if not node.raft.quorum.is_leader:
            self._print(f"{node_id} does not lead")
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

    def _forget(self, node_id: str) -> None:
        self._world.nodes[int(node_id)].stored = ElectionState()

    # Changes of voters.

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
            self._print("nobody leads")
            return
        self._world.change_voters(leader.settings.node_id, request, self._answered)

    def _answered(self, answer: Message) -> None:
        if isinstance(answer, AddRaftVoterResponse | RemoveRaftVoterResponse):
            message = f": {answer.error_message}" if answer.error_message else ""
            self._print(f"{self._time()} {ErrorCode(answer.error_code).name}{message}")

    def _upgrade(self) -> None:
        leader = self._world.leader
        if leader is None:
            self._print("nobody leads")
            return
        try:
            leader.raft.upgrade_kraft_version(DYNAMIC, validate_only=False)
        except KafkaError as error:
            self._print(f"{error.code.name}: {error.message}")
        self._settle(leader)

    # What is printed.

    def _trace(self) -> None:
        self._world.on_message = self._message

    def _quiet(self) -> None:
        self._world.on_message = lambda sender, receiver, message: None

    def _time(self) -> str:
        return f"+{self._world.now_ms - self._began_ms:.0f}"

    def _message(self, sender: int, receiver: int, message: Message) -> None:
        told = _told(message)
        if told is not None:
            self._print(f"{self._time()} {sender} to {receiver}: {told}")

    def _show(self) -> None:
        for node_id, node in sorted(self._world.nodes.items()):
            if not node.is_up:
                self._print(f"{node_id} is down")
                continue
            raft = node.raft
            leader = f" of {raft.quorum.leader_id}" if raft.quorum.leader_id not in (-1, node_id) else ""
            voting = "" if raft.quorum.is_voter else ", does not vote"
            self._print(
                f"{node_id} {raft.quorum.role.name.lower()}{leader}, epoch {raft.quorum.epoch}, "
                f"end {node.log.end.offset}, committed {raft.quorum.high_watermark}{voting}"
            )

    def _log(self, node_id: str) -> None:
        log = self._world.nodes[int(node_id)].log
        records = " ".join(f"{record.epoch}:{_value(record)}" for record in log.entries)
        self._print(f"{node_id} from {log.start_offset}: {records}")

    def _describe(self) -> None:
        leader = self._world.leader
        view = None if leader is None else leader.raft.describe(self._world.now_ms)
        if view is None:
            self._print("nobody leads")
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


def _told(message: Message) -> str | None:
    if isinstance(message, VoteRequest):
        vote = message.topics[0].partitions[0]
        what = "promise me your vote" if vote.pre_vote else "vote for me"
        return f"{what}, epoch {vote.replica_epoch}, my log ends at {vote.last_offset}"
    if isinstance(message, VoteResponse):
        answer = message.topics[0].partitions[0]
        if answer.error_code:
            return f"no, {ErrorCode(answer.error_code).name}, epoch {answer.leader_epoch}"
        return "yes" if answer.vote_granted else "no"
    if isinstance(message, BeginQuorumEpochRequest):
        return f"I lead epoch {message.topics[0].partitions[0].leader_epoch}"
    if isinstance(message, EndQuorumEpochRequest):
        ended = message.topics[0].partitions[0]
        return f"I resign from epoch {ended.leader_epoch}, next {ended.preferred_successors}"
    if isinstance(message, UpdateRaftVoterRequest):
        return "this is how I am"
    if isinstance(message, AddRaftVoterRequest):
        return "let me vote"
    if isinstance(message, RemoveRaftVoterRequest):
        return "remove my old directory"
    if isinstance(message, FetchSnapshotResponse):
        partition = message.topics[0].partitions[0]
        return f"snapshot {partition.snapshot_id.end_offset}, from byte {partition.position}"
    return None
