"""How far a partition is committed, and who may be in sync: the leader's rules, on a real log."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.image import (
    RECOVERING,
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionRegistration,
)
from moldau.replication.leadership import IsrChange, Leadership
from moldau.replication.local_broker import LocalBroker
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from tests.harness.wire.batches import batch

LAG_MS = 1000
CONFIG = BrokerConfig.from_properties(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "replica.lag.time.max.ms": str(LAG_MS),
        "replica.fetch.wait.max.ms": "500",
    }
)


class Leader:
    """Broker 1 leads, 2 and 3 follow; their broker epochs are 12 and 13."""

    def __init__(self, folder: Path, *, isr: tuple[int, ...] = (1, 2, 3), min_isr: int = 1) -> None:
        self.clock = ManualClock()
        self.log = Log.open(
            PosixDisk(),
            self.clock,
            str(folder / "t-0"),
            TopicPartition("t", 0),
            None,
            LogConfig(min_insync_replicas=min_isr),
        )
        self.broker = LocalBroker(1, self.clock, lambda: CONFIG, lambda: 11)
        self.brokers(2, 3)
        registration = PartitionRegistration((1, 2, 3), (Uuid(bytes(16)),) * 3, isr, 1)
        self.leadership = Leadership(self.broker, registration)
        self.leadership.adopt(registration)
        self.leadership.begin_epoch(self.log, new_leader=True)

    def brokers(self, *active: int) -> None:
        cluster = {
            number: BrokerRegistration(
                number, 10 + number, Uuid(bytes(16)), fenced=number not in (1, *active)
            )
            for number in (1, 2, 3)
        }
        self.broker.image = MetadataImage(cluster=ClusterImage(cluster))

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.log.append_as_leader(bytearray(batch(timestamp=self.clock.time_ms())), 0)

    def fetch(self, replica: int, offset: int, epoch: int | None = None) -> IsrChange | None:
        leadership = self.leadership
        remote = leadership.follower(replica, epoch_known=True)
        broker_epoch = 10 + replica if epoch is None else epoch
        leadership.fetched(remote, offset, 0, self.log.log_end_offset, broker_epoch)
        return leadership.proposed_growth(remote, self.log)

    @property
    def committed(self) -> int:
        return self.leadership.committed_end(self.log)

    def commit(self) -> None:
        self.log.high_watermark = self.committed


class TestHighWatermark:
    def test_high_watermark_is_the_smallest_log_end_offset_in_the_isr(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path)
        leader.append(10)
        assert leader.committed < 0, "nobody has fetched yet"
        leader.fetch(2, 7)
        leader.fetch(3, 5)
        assert leader.committed == 5

    def test_high_watermark_ignores_a_replica_that_is_far_behind(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        leader.append(10)
        leader.fetch(2, 10)
        leader.commit()
        leader.append(1)
        leader.fetch(3, 1)
        leader.fetch(2, 11)
        assert leader.committed == 11

    def test_high_watermark_waits_for_a_replica_proposed_for_the_isr(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        leader.append(5)
        leader.fetch(2, 5)
        assert leader.fetch(3, 5) is not None
        leader.append(1)
        leader.fetch(2, 6)
        assert leader.committed == 5, "the controller may have made 3 part of it already"

    def test_high_watermark_waits_for_a_caught_up_replica_that_may_join(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        leader.append(5)
        leader.fetch(3, 5, epoch=13)
        leader.leadership.pending = None
        leader.leadership.maximal_isr = (1, 2)
        leader.append(1)
        leader.fetch(2, 6)
        assert leader.committed == 5
        leader.brokers(2)
        assert leader.committed == 6, "a fenced broker cannot come in"
        leader.brokers(2, 3)
        leader.clock.advance(LAG_MS + 1)
        assert leader.committed == 6, "it had its time"

    def test_high_watermark_does_not_advance_below_min_isr(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1,), min_isr=2)
        leader.append(3)
        assert leader.committed == leader.log.high_watermark == 0


class TestGrowth:
    def test_replica_joins_the_isr_at_the_high_watermark_and_the_epoch_start(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        leader.append(10)
        leader.leadership.begin_epoch(leader.log, new_leader=True)
        assert leader.fetch(3, 9) is None, "the epoch begins at 10"
        change = leader.fetch(3, 10)
        assert change == IsrChange((1, 2, 3), (11, -1, 13), 0, 0)
        assert leader.fetch(3, 10) is None, "one change at a time"

    @pytest.mark.parametrize("epoch", [14, 12])
    def test_replica_with_another_broker_epoch_does_not_join_the_isr(
        self, tmp_path: Path, epoch: int
    ) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        if epoch < 13:
            with pytest.raises(KafkaError):
                leader.fetch(3, 0, epoch=epoch)
        else:
            assert leader.fetch(3, 0, epoch=epoch) is None

    def test_fenced_broker_is_not_proposed_for_the_isr(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        leader.brokers(2)
        assert leader.fetch(3, 0) is None

    def test_fetch_of_a_broker_without_replica_is_refused(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path)
        with pytest.raises(KafkaError) as error:
            leader.fetch(9, 0)
        assert error.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


class TestShrinking:
    def test_replica_that_lags_longer_than_the_limit_leaves_the_isr(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path)
        leader.append(1)
        leader.fetch(2, 1)
        leader.clock.advance(LAG_MS)
        assert leader.leadership.proposed_shrinking(leader.log) is None
        leader.clock.advance(1)
        change = leader.leadership.proposed_shrinking(leader.log)
        assert change is not None and change.isr == (1, 2)

    def test_isr_shrinks_only_after_the_controller_confirmed_it(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path)
        leader.append(1)
        leader.fetch(2, 1)
        leader.clock.advance(LAG_MS + 1)
        change = leader.leadership.proposed_shrinking(leader.log)
        assert change is not None
        assert leader.committed < 1
        assert leader.leadership.confirmed(change, (1, 2), 0, 1)
        assert leader.committed == 1
        assert leader.leadership.registration.partition_epoch == 1


class TestAnswers:
    def proposal(self, leader: Leader) -> IsrChange:
        change = leader.fetch(3, 0)
        assert change is not None
        return change

    @pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
    def test_refused_change_can_be_proposed_again(self, tmp_path: Path, code: ErrorCode) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        assert not leader.leadership.refused(self.proposal(leader), code)
        assert leader.leadership.maximal_isr == (1, 2)
        self.proposal(leader)

    @pytest.mark.parametrize(
        "code",
        [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NEW_LEADER_ELECTED],
    )
    def test_outdated_leader_proposes_nothing_until_the_metadata_arrives(
        self, tmp_path: Path, code: ErrorCode
    ) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        assert not leader.leadership.refused(self.proposal(leader), code)
        assert leader.fetch(3, 0) is None, "until the metadata tells how things are"
        assert list(leader.leadership.maximal_isr) == [1, 2, 3], "it may have been made"
        leader.leadership.adopt(leader.leadership.registration._replace(partition_epoch=5))
        self.proposal(leader)

    def test_change_is_sent_again_after_other_errors(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        assert leader.leadership.refused(self.proposal(leader), ErrorCode.UNKNOWN_SERVER_ERROR)

    def test_response_older_than_the_metadata_is_ignored(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1, 2))
        change = self.proposal(leader)
        leader.leadership.adopt(leader.leadership.registration._replace(partition_epoch=7, isr=(1,)))
        assert not leader.leadership.confirmed(change, (1, 2, 3), 0, 1)
        assert leader.leadership.registration.isr == (1,)

    def test_uncleanly_elected_leader_is_recovered_by_its_first_isr_change(self, tmp_path: Path) -> None:
        leader = Leader(tmp_path, isr=(1,))
        leader.leadership.adopt(leader.leadership.registration._replace(leader_recovery_state=RECOVERING))
        change = self.proposal(leader)
        assert leader.leadership.confirmed(change, (1, 3), 0, 1)
        assert leader.leadership.registration.leader_recovery_state == 0
