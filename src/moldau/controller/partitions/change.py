"""The next state of a partition: leader, ISR, ELR, reassignment. All changes of partitions are computed here.

A `PartitionChange` starts without changes, gets the intended ones (a smaller ISR, other replicas, another
kind of election), and returns the record that makes them, or None if nothing changes.

Rules:

- a leader is active and in the ISR, or, if the ISR is empty, in the eligible leader replicas (ELR, KIP-966);
- with ELR enabled the ISR may become empty: a replica that leaves an ISR smaller than `min.insync.replicas`
  becomes eligible, because it has all committed records, unless its broker stopped uncleanly; the last leader
  is remembered and may lead again if no replica is eligible, which counts as an unclean election;
- an unclean election (of the last leader, or of any active replica if the topic allows it) makes the new
  leader the only member of the ISR;
- a reassignment is complete as soon as every added replica is in the ISR; one that reduces the number of
  replicas waits for all remaining ones, so that it does not shrink the ISR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from moldau.base.ids import DirectoryId, TopicId
from moldau.metadata.features import DIRECTORY_ASSIGNMENT_SUPPORTED, NO_EPOCH_BUMP_ON_ISR_SHRINK
from moldau.metadata.image import NO_LEADER, RECOVERING, PartitionRegistration
from moldau.metadata.registrations import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE
from moldau.protocol.stored.metadata import PartitionChangeRecord

Replicas = tuple[int, ...]


class Election(Enum):
    #: The current leader, else any in-sync replica.
    ONLINE = auto()
    #: The preferred replica if possible, else as ONLINE.
    PREFERRED = auto()
    #: As ONLINE; if no in-sync replica is active, any active replica.
    UNCLEAN = auto()


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """The rules of changes that all partitions of a topic share."""

    metadata_version: int
    elr_enabled: bool
    #: `min.insync.replicas` of the topic, at most its replication factor.
    min_isr: int
    #: Whether a broker may lead with its replica in a directory: active, and with the directory online.
    may_lead: Callable[[int, DirectoryId], bool]
    #: The log directory of a new replica on a broker.
    default_directory: Callable[[int], DirectoryId]


class PartitionChange:
    def __init__(
        self, partition: PartitionRegistration, topic_id: TopicId, index: int, rules: ChangeRules
    ) -> None:
        self._before = partition
        self._rules = rules
        self._record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
        self.isr = partition.isr
        self.replicas = partition.replicas
        self.removing = partition.removing
        self.adding = partition.adding
        self.leader_recovery_state = partition.leader_recovery_state
        self.election = Election.ONLINE
        #: Brokers restarted after an unclean shutdown, which may lack committed records.
        self.unclean_shutdown: Replicas = ()
        self.directories = dict(zip(partition.replicas, partition.directories, strict=True))
        self._elr = partition.elr

    def record(self) -> PartitionChangeRecord | None:
        """Return the change as a record; None if nothing changes."""
        self._complete_reassignment()
        self._choose_eligible_leaders()
        self._elect()
        if self.replicas is not self._before.replicas:
            self._raise_epoch_if(not set(self._before.replicas) <= set(self.replicas))
        self._set_isr()
        if self._rules.metadata_version < NO_EPOCH_BUMP_ON_ISR_SHRINK and self._record.isr is not None:
            self._raise_epoch_if(not set(self._before.isr) <= set(self._record.isr))
        self._remember_last_leader()
        self._set_assignment()
        if self.leader_recovery_state != self._before.leader_recovery_state:
            self._record.leader_recovery_state = self.leader_recovery_state
        return None if self._is_empty() else self._record

    def _complete_reassignment(self) -> None:
        if not self.removing and not self.adding:
            return
        isr = tuple(replica for replica in self.isr if replica not in self.removing)
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        awaited = replicas if len(self.adding) < len(self.removing) else self.adding
        if isr and replicas and set(awaited) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _choose_eligible_leaders(self) -> None:
        if not self._rules.elr_enabled:
            return
        if len(self.isr) >= self._rules.min_isr:
            self._elr = ()
            return
        candidates = {*self._elr, *self._before.isr} & set(self.replicas)
        self._elr = tuple(sorted(candidates - set(self.isr) - set(self.unclean_shutdown)))

    def _elect(self) -> None:
        leader, unclean = self._find_leader()
        if leader == self._before.leader:
            return
        if leader in self._elr:
            self.isr = (leader,)
            self._elr = tuple(replica for replica in self._elr if replica != leader)
        self._record.leader = leader
        if unclean:
            self._record.isr = [leader]
            if self._before.leader_recovery_state != RECOVERING:
                self._record.leader_recovery_state = RECOVERING

    def _find_leader(self) -> tuple[int, bool]:
        """Return the next leader, and whether its election is unclean."""
        order = [self._before.leader, *self.replicas]
        if self.election is Election.PREFERRED:
            order.insert(0, self.replicas[0])
        leader = next((replica for replica in order if self._can_lead_cleanly(replica)), None)
        if leader is not None:
            return leader, False
        if self._last_leader_can_return():
            return self._before.last_known_elr[0], True
        if self.election is Election.UNCLEAN:
            alive = next((replica for replica in self.replicas if self._may_lead(replica)), None)
            if alive is not None:
                return alive, True
        return NO_LEADER, False

    def _can_lead_cleanly(self, replica: int) -> bool:
        in_sync = replica in self.isr or (not self.isr and replica in self._elr)
        return in_sync and self._may_lead(replica)

    def _may_lead(self, replica: int) -> bool:
        return self._rules.may_lead(replica, self._before.directory_of(replica))

    def _last_leader_can_return(self) -> bool:
        if not self._rules.elr_enabled or self._elr or self.isr:
            return False
        last = self._before.last_known_elr
        return len(last) == 1 and last[0] in self.replicas and self._may_lead(last[0])

    def _raise_epoch_if(self, needed: bool) -> None:
        """Set the leader, even to the same one: this bumps the leader epoch and fences removed replicas."""
        if needed and self._record.leader == NO_LEADER_CHANGE:
            self._record.leader = self._before.leader

    def _set_isr(self) -> None:
        unclean = self._record.isr is not None
        if unclean or not self._rules.elr_enabled:
            self._elr = ()
        if self._elr != self._before.elr:
            self._record.eligible_leader_replicas = list(self._elr)
        may_be_set = bool(self.isr) or self._rules.elr_enabled
        if not unclean and may_be_set and self.isr != self._before.isr:
            self._record.isr = list(self.isr)

    def _remember_last_leader(self) -> None:
        if not self._rules.elr_enabled:
            return
        before, record = self._before, self._record
        if record.leader == NO_LEADER and before.has_leader and not before.last_known_elr:
            record.last_known_elr = [before.leader]
        elif record.leader >= 0 and before.last_known_elr:
            record.last_known_elr = []

    def _set_assignment(self) -> None:
        before, record = self._before, self._record
        if self.replicas and self._rules.metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED:
            directories = [self._directory(replica) for replica in self.replicas]
            if directories != list(before.directories):
                record.directories = directories
        if self.replicas and self.replicas != before.replicas:
            record.replicas = list(self.replicas)
        if self.removing != before.removing:
            record.removing_replicas = list(self.removing)
        if self.adding != before.adding:
            record.adding_replicas = list(self.adding)

    def _directory(self, replica: int) -> DirectoryId:
        directory = self.directories.get(replica)
        return self._rules.default_directory(replica) if directory is None else directory

    def _is_empty(self) -> bool:
        record = self._record
        changed = (
            record.isr,
            record.replicas,
            record.removing_replicas,
            record.adding_replicas,
            record.directories,
            record.eligible_leader_replicas,
            record.last_known_elr,
        )
        return (
            all(value is None for value in changed)
            and record.leader == NO_LEADER_CHANGE
            and record.leader_recovery_state == NO_RECOVERY_STATE_CHANGE
        )
