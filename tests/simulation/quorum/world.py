"""The simulation of a quorum from a seed: nodes that run `moldau.raft`, and faults.

Messages are delayed, reordered, lost and duplicated; links fail, also in one direction; nodes crash and lose
unsynced records; clocks run at different speeds; leaders resign, voters are added and removed, logs are
replaced by snapshots. The invariants are checked after every step. At the end all faults are healed, and
within bounded time there must be a leader, every node must have every committed record, and no acknowledged
record may be missing.

Messages are passed as objects, not encoded, so that thousands of simulations fit into seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

from moldau.base.ids import DirectoryId, Uuid
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.raft.raft import Raft
from moldau.raft.settings import RaftSettings
from moldau.raft.types import OutboundRequest
from moldau.raft.voters import DYNAMIC, Voter, VoterEndpoint, VoterHistory, VoterSet
from tests.harness.worlds.memory_log import Entry
from tests.simulation.quorum.invariants import Invariants
from tests.simulation.quorum.machine import Machine
from tests.simulation.quorum.network import Conditions, Network

_CLUSTER_ID = "soup"
#: How long a healed quorum may take until every node has every record. The fetch timeout is 2 s, the election
#: timeout 1 s, and a candidate that loses waits for another election timeout.
_RECOVERY_MS = 60_000.0


class World:
    """`raft` can be replaced by a class that violates an invariant on purpose."""

    def __init__(self, seed: int | str, raft: type[Raft] = Raft) -> None:
        self.random = Random(f"{seed}/world")
        self.network = Network(Random(f"{seed}/soup"))
        self.invariants = Invariants()
        self._raft = raft
        self._seed = seed
        self._numbers = itertools.count(1)
        self._proposals = itertools.count(1)
        random = self.random
        voters = random.choice((1, 3, 3, 3, 5))
        others = random.choice((0, 0, 1, 2))
        self.dynamic = random.random() < 0.5
        self._unacknowledged: list[tuple[Machine, int, int, object]] = []
        self.acknowledged: list[object] = []
        self.machines = {each: Machine(self, each, _directory(each)) for each in range(voters + others)}
        self._first_voters = VoterSet.of(self._voter(self.machines[each]) for each in range(voters))
        for machine in self.machines.values():
            machine.speed = random.choice((1.0, 1.0, 0.9, 1.1, random.uniform(0.5, 1.5)))

    # Used by the nodes.

    def number(self) -> int:
        return next(self._numbers)

    def find(self, outbound: OutboundRequest) -> Machine | None:
        return self.machines.get(outbound.endpoint.port - 9000)

    def make_raft(self, machine: Machine) -> Raft:
        settings = RaftSettings(
            node_id=machine.id,
            directory_id=machine.directory_id,
            cluster_id=_CLUSTER_ID,
            endpoints=(_endpoint(machine.id),),
            bootstrap_servers=tuple(
                _endpoint(each)[1:] for each in (self.machines if self.dynamic else self._first_voters.ids)
            ),
            can_vote=self.dynamic or machine.id in self._first_voters.ids,
        )
        randomness = Random(f"{self._seed}/{machine.id}/{machine.incarnation}")
        return self._raft(settings, machine.log, machine.stored, machine.history, randomness, machine.now())

    def voters_of(self, machine: Machine) -> VoterHistory:
        """Return the voter history on the node's disk."""
        if not self.dynamic:
            return VoterHistory(self._first_voters)
        history, log = VoterHistory(), machine.log
        if machine.id in self._first_voters.ids:
            history.add(-1, kraft_version=DYNAMIC, voters=self._first_voters)
        for snapshot in log.snapshots:
            version, voters = self.invariants.snapshots[snapshot]
            history.add(snapshot.offset - 1, kraft_version=version, voters=voters)
        for offset in range(log.start_offset, log.end_offset):
            value = log.at(offset).value
            if isinstance(value, VoterSet):
                history.add(offset, voters=value)
            elif isinstance(value, int):
                history.add(offset, kraft_version=value)
        return history

    def _voter(self, machine: Machine) -> Voter:
        endpoints = (_endpoint(machine.id),)
        return (
            Voter(machine.id, machine.directory_id, endpoints)
            if self.dynamic
            else Voter(machine.id, endpoints=endpoints)
        )

    # Events.

    def run(self, steps: int = 60) -> None:
        for machine in self.machines.values():
            machine.start()
        for _ in range(steps):
            self._events()[self.random.randrange(len(self._events()))]()
            self.network.run_until(self.network.now + self.random.choice((1.0, 20.0, 300.0, 2500.0)))
            self._acknowledge()
        self._heal()
        self._check_end()

    def _events(self) -> list[Callable[[], None]]:
        events = [self._propose] * 12 + [self._crash] * 3 + [self._restart] * 3 + [self._disconnect] * 3
        events += [self._reconnect] * 2 + [self._change_conditions] * 2 + [self._suspect_leader, self._resign]
        events += [self._snapshot] * 3
        return events + ([self._change_voters] * 3 if self.dynamic else [])

    def _some(self, which: Callable[[Machine], bool]) -> Machine | None:
        found = [each for each in self.machines.values() if which(each)]
        return self.random.choice(found) if found else None

    def _leader(self) -> Machine | None:
        """Return any node that believes it is the leader."""
        return self._some(lambda each: each.raft is not None and each.raft.quorum.is_leader)

    def _propose(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            leader = self._leader()
            if leader is None or leader.raft is None:
                return
            value = ("data", next(self._proposals))
            entry = Entry(leader.raft.quorum.epoch, value)
            self._unacknowledged.append((leader, leader.incarnation, leader.log.end_offset, entry))
            leader.step(lambda raft, leader=leader, entry=entry: leader.write(entry))  # type: ignore[misc]

    def _acknowledge(self) -> None:
        """Acknowledge entries once the leader that appended them sees them committed."""
        still = []
        for machine, incarnation, offset, entry in self._unacknowledged:
            if machine.raft is None or machine.incarnation != incarnation:
                continue
            if machine.raft.quorum.high_watermark > offset >= machine.log.start_offset:
                if machine.log.at(offset) == entry:
                    self.acknowledged.append(entry)
            elif machine.raft.quorum.is_leader:
                still.append((machine, incarnation, offset, entry))
        self._unacknowledged = still

    def _crash(self) -> None:
        machine = self._some(lambda each: each.raft is not None)
        if machine is not None:
            machine.crash(keep=self.random.choice((0, 0, 1, 100)))

    def _restart(self) -> None:
        machine = self._some(lambda each: each.raft is None)
        if machine is not None:
            machine.start()

    def _disconnect(self) -> None:
        one, other = self.random.choice(list(self.machines)), self.random.choice(list(self.machines))
        kind = self.random.randrange(3)
        if kind == 0:
            self.network.disconnected.add((one, other))
        elif kind == 1:
            self.network.disconnected |= {(one, other), (other, one)}
        else:
            side = {each for each in self.machines if self.random.random() < 0.5}
            self.network.disconnected |= {
                (a, b) for a in self.machines for b in self.machines if (a in side) != (b in side)
            }

    def _reconnect(self) -> None:
        self.network.disconnected.clear()

    def _change_conditions(self) -> None:
        self.network.conditions = Conditions.draw(self.random)

    def _suspect_leader(self) -> None:
        """Make a node believe that the leader has exited."""
        machine = self._some(lambda each: each.raft is not None)
        if machine is not None:
            machine.step(lambda raft: raft.leader_exited(machine.now()))

    def _resign(self) -> None:
        leader = self._leader()
        if leader is not None:
            leader.step(lambda raft: raft.resign(leader.now()))

    def _snapshot(self) -> None:
        machine = self._some(lambda each: each.raft is not None)
        if machine is not None:
            machine.snapshot()

    def _change_voters(self) -> None:
        leader = self._leader()
        if leader is None or leader.raft is None:
            return
        machine = self.machines[self.random.choice(list(self.machines))]
        if machine.id in leader.raft.quorum.voters.ids:
            # The leader of two voters is not removed: if it appends its own removal and the other voter does
            # not fetch it, neither can be elected. Kafka has this limit, too.
            if len(leader.raft.quorum.voters.ids) > (2 if machine is leader else 1):
                remove = RemoveRaftVoterRequest(
                    cluster_id=_CLUSTER_ID, voter_id=machine.id, voter_directory_id=machine.directory_id
                )
                leader.step(lambda raft: raft.remove_voter(remove, leader.now()))
            return
        endpoint = _endpoint(machine.id)
        add = AddRaftVoterRequest(
            cluster_id=_CLUSTER_ID,
            timeout_ms=5000,
            voter_id=machine.id,
            voter_directory_id=machine.directory_id,
            listeners=[Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
        )
        leader.step(lambda raft: raft.add_voter(add, leader.now()))

    # Recovery.

    def _heal(self) -> None:
        self.network.disconnected.clear()
        self.network.conditions = Conditions()
        for machine in self.machines.values():
            if machine.raft is None:
                machine.start()

    def _check_end(self) -> None:
        last = Entry(-1, ("data", "last"))

        def done() -> bool:
            nonlocal last
            leader = self.machines.get(self.invariants.leaders.get(self.invariants.last_epoch, -1))
            if leader is None or leader.raft is None or not leader.raft.quorum.is_leader:
                return False
            if last.epoch != leader.raft.quorum.epoch:
                last = Entry(leader.raft.quorum.epoch, ("data", "last"))
                leader.step(lambda raft: leader.write(last))
            return all(self._is_complete(each, last) for each in self.machines.values())

        assert self.network.run_until(self.network.now + _RECOVERY_MS, done), (
            f"every node has every committed record: {self}"
        )
        self._acknowledge()
        values = set(self.invariants.committed)
        missing = [entry for entry in self.acknowledged if entry not in values]
        assert not missing, f"acknowledged records are committed: not {missing}"

    def _is_complete(self, machine: Machine, last: Entry) -> bool:
        raft, committed = machine.raft, self.invariants.committed
        if raft is None or not committed or last not in committed[-3:]:
            return False
        return raft.quorum.high_watermark == len(committed) <= machine.log.end_offset

    def __str__(self) -> str:
        states = []
        for each in self.machines.values():
            raft = each.raft
            if raft is not None:
                quorum = raft.quorum
                states.append(
                    f"{each.id}: {quorum.role.name} epoch {quorum.epoch} leader {quorum.leader_id}"
                    f" hw {quorum.high_watermark} end {each.log.end} voters {quorum.voters.ids}"
                )
        return f"committed {len(self.invariants.committed)}; " + "; ".join(states)


def _directory(node_id: int) -> DirectoryId:
    return Uuid(bytes(14) + bytes((1, node_id + 1)))


def _endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint("CONTROLLER", f"node{node_id}", 9000 + node_id)


def simulate(seed: int | str, raft: type[Raft] = Raft) -> World:
    world = World(seed, raft)
    try:
        world.run()
    except Exception as error:
        error.add_note(f"to replay: MOLDAU_SIMULATION_SEED={seed} pytest tests/simulation/test_quorum.py")
        raise
    return world
