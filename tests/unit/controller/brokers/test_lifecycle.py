"""The life of a broker. What happens to records here was compared with what Apache Kafka 4.3 writes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.controller.brokers.directories import assign_replicas_to_dirs
from moldau.controller.brokers.lifecycle import (
    broker_heartbeat,
    fence_broker,
    register_controller,
    unregister_broker,
)
from moldau.controller.controller import Controller
from moldau.controller.producer_ids import allocate_producer_ids
from moldau.metadata.features import supported_features
from moldau.metadata.image import RECOVERING
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration import Feature as BrokerFeature
from moldau.protocol.messages.broker_registration import Listener as BrokerListener
from moldau.protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.stored.metadata import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from tests.unit.controller.harness import CLUSTER_ID, Cluster, config
from tests.unit.metadata.builders import uid


class TestActivation:
    def test_an_empty_log_gets_the_bootstrap_records_in_one_transaction(self) -> None:
        cluster = Cluster(brokers=())
        assert isinstance(cluster.records[0], BeginTransactionRecord)
        assert cluster.records[0].name == "Bootstrap records"
        assert cluster.records[1] == FeatureLevelRecord(name="metadata.version", feature_level=30)
        assert cluster.records[-2:] == [
            ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
            EndTransactionRecord(),
        ]

    def test_without_elr_min_insync_replicas_is_not_written(self) -> None:
        cluster = Cluster(brokers=(), levels={"eligible.leader.replicas.version": 0})
        assert not any(isinstance(record, ConfigRecord) for record in cluster.records)

    def test_bootstrap_records_need_no_transaction_in_old_metadata_versions(self) -> None:
        levels = {"metadata.version": 11, "eligible.leader.replicas.version": 0}
        cluster = Cluster(brokers=(), levels=levels)
        assert all(isinstance(record, FeatureLevelRecord) for record in cluster.records)

    def test_an_open_metadata_transaction_is_aborted(self) -> None:
        cluster = Cluster()
        decision = cluster.controller.activate([], in_transaction=True, kraft_version=1, now_ms=0)
        assert [type(record).__name__ for record in decision.records] == ["AbortTransactionRecord"]

    def test_a_log_with_records_gets_no_bootstrap_records(self) -> None:
        cluster = Cluster()
        assert not cluster.controller.activate([], in_transaction=False, kraft_version=1, now_ms=0).records


class TestRegistration:
    def test_a_broker_registers_fenced_with_the_offset_as_epoch(self) -> None:
        cluster = Cluster(brokers=())
        offset = cluster.controller.state.next_offset
        assert cluster.register(1, rack="r").broker_epoch == offset
        (record,) = cluster.records
        assert isinstance(record, RegisterBrokerRecord)
        assert (record.fenced, record.rack, record.log_dirs) == (True, "r", [uid(101)])
        assert not cluster.controller.image.cluster.is_active(1)

    def test_a_broker_is_unfenced_when_it_has_caught_up(self) -> None:
        cluster = Cluster(brokers=())
        cluster.register(1)
        behind = cluster.heartbeat(1, current_metadata_offset=cluster.epoch(1) - 1)
        assert (behind.is_caught_up, behind.is_fenced) == (False, True)
        assert cluster.records == []
        waiting = cluster.heartbeat(1, want_fence=True)
        assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
        there = cluster.heartbeat(1)
        assert (there.is_caught_up, there.is_fenced, there.should_shut_down) == (True, False, False)
        assert cluster.records == [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=cluster.epoch(1), fenced=-1)
        ]

    def test_the_same_incarnation_may_register_again(self) -> None:
        cluster = Cluster()
        epoch = cluster.epoch(1)
        assert cluster.register(1, host="elsewhere").broker_epoch == epoch
        assert cluster.controller.image.cluster.is_active(1)
        assert cluster.controller.image.cluster.brokers[1].endpoints[0].host == "elsewhere"

    def test_another_incarnation_of_a_live_broker_is_a_duplicate_registration(self) -> None:
        cluster = Cluster((1, 2))
        with pytest.raises(KafkaError, match="Another broker is registered with that broker id") as failure:
            cluster.register(2, incarnation=5)
        assert failure.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        cluster.now += 9_001
        assert cluster.register(2, incarnation=5).broker_epoch > 0

    @pytest.mark.parametrize(
        ("changes", "code", "message"),
        [
            ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "but got cluster ID other"),
            ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
            ({"log_dirs": [Uuid(bytes(16))]}, ErrorCode.INVALID_REGISTRATION, "Reserved directory ID"),
            ({"log_dirs": [uid(5), uid(5)]}, ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID"),
            ({"log_dirs": [uid(101)]}, ErrorCode.INVALID_REGISTRATION, "Broker 1 is already registered with"),
            ({"features": []}, ErrorCode.INVALID_REGISTRATION, "do not contain 'metadata.version'"),
            (
                {"listeners": [BrokerListener(name="X", host="h", port=1, security_protocol=9)]},
                ErrorCode.INVALID_REGISTRATION,
                "Unknown security protocol 9 of X",
            ),
            ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED, "ZK brokers"),
        ],
    )
    def test_invalid_registrations_are_refused(
        self, changes: dict[str, object], code: ErrorCode, message: str
    ) -> None:
        cluster = Cluster()
        with pytest.raises(KafkaError, match=message) as failure:
            cluster.register(2, **changes)  # type: ignore[arg-type]
        assert failure.value.code is code

    def test_finalized_levels_must_be_supported(self) -> None:
        cluster = Cluster(brokers=(), levels={"group.version": 1})
        from moldau.protocol.messages.broker_registration import Feature as BrokerFeature

        features = [
            BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),
            BrokerFeature(
                name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
            ),
        ]
        with pytest.raises(KafkaError, match=r"does not support finalized version 1 of group.version"):
            cluster.register(1, features=features)
        assert cluster.register(1).broker_epoch > 0

    def test_the_kraft_version_must_be_supported(self) -> None:
        cluster = Cluster()
        features = [
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_features(cluster.controller.image.features.levels).items()
            if name != "kraft.version"
        ]
        with pytest.raises(KafkaError, match="finalized version 1 of kraft"):
            cluster.register(2, features=features)

    def test_a_controller_is_registered(self) -> None:
        cluster = Cluster(brokers=())
        request = ControllerRegistrationRequest(
            controller_id=1,
            incarnation_id=uid(4),
            listeners=[Listener(name="CONTROLLER", host="h", port=9093)],
            features=[Feature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
        )
        cluster.decide(register_controller, request)
        assert isinstance(cluster.records[0], RegisterControllerRecord)
        assert cluster.controller.image.cluster.controllers[1].endpoints[0].port == 9093
        request.listeners[0].security_protocol = 9
        with pytest.raises(KafkaError, match="Unknown security protocol"):
            cluster.decide(register_controller, request)

    def test_a_stale_broker_epoch_is_refused(self) -> None:
        cluster = Cluster()
        with pytest.raises(KafkaError, match="Expected broker epoch") as failure:
            cluster.heartbeat(1, broker_epoch=0)
        assert failure.value.code is ErrorCode.STALE_BROKER_EPOCH
        with pytest.raises(KafkaError, match="No broker registration found for broker id 7"):
            cluster.heartbeat(1, broker_id=7)


class TestOneNodeRestarts:
    """The only replica of a single node stops and restarts."""

    def test_after_a_clean_restart_the_eligible_replica_leads_again(self) -> None:
        cluster = Cluster()
        topic_id = cluster.create().topic_id
        epoch = cluster.epoch(1)
        assert not cluster.stop(1).should_shut_down
        assert cluster.records == [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
            PartitionChangeRecord(
                partition_id=0,
                topic_id=topic_id,
                isr=[],
                leader=-1,
                eligible_leader_replicas=[1],
                last_known_elr=[1],
            ),
        ]
        stopped = cluster.stop(1)
        assert stopped.should_shut_down and stopped.is_fenced
        assert cluster.records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)]

        cluster.register(1, incarnation=2, previous_epoch=epoch)
        assert [type(record) for record in cluster.records] == [RegisterBrokerRecord]
        cluster.unfence(1)
        assert cluster.records == [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=cluster.epoch(1), fenced=-1),
            PartitionChangeRecord(
                partition_id=0,
                topic_id=topic_id,
                isr=[1],
                leader=1,
                eligible_leader_replicas=[],
                last_known_elr=[],
            ),
        ]
        assert cluster.partition().leader_epoch == 2

    def test_after_a_crash_the_broker_of_this_node_registers_without_waiting_for_its_session(self) -> None:
        cluster = Cluster()
        topic_id = cluster.create().topic_id
        restart(cluster)
        cluster.register(1, incarnation=2)
        assert cluster.records[0] == PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, isr=[], leader=-1, last_known_elr=[1]
        )
        cluster.unfence(1)
        assert cluster.records[1] == PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, isr=[1], leader=1, leader_recovery_state=1, last_known_elr=[]
        )
        assert cluster.partition().leader_recovery_state == RECOVERING

    def test_after_a_session_timeout_an_unclean_restart_leads_by_unclean_election(self) -> None:
        """Fenced by a session timeout, then back without a clean shutdown: the records of Apache 4.3."""
        cluster = Cluster()
        topic_id = cluster.create().topic_id
        cluster.now += 10_000
        cluster.tick()
        assert cluster.records[0] == PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        )
        cluster.register(1, incarnation=2)
        assert cluster.records[0] == PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, eligible_leader_replicas=[]
        )
        cluster.unfence(1)
        assert cluster.records[1] == PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, isr=[1], leader=1, leader_recovery_state=1, last_known_elr=[]
        )

    def test_without_elr_the_isr_keeps_its_last_member(self) -> None:
        cluster = Cluster(levels={"eligible.leader.replicas.version": 0})
        cluster.create()
        cluster.stop(1)
        assert (cluster.partition().isr, cluster.partition().leader) == ((1,), -1)
        cluster.stop(1)
        cluster.register(1, incarnation=2, previous_epoch=cluster.epoch(1))
        cluster.unfence(1)
        assert (cluster.partition().isr, cluster.partition().leader) == ((1,), 1)

    def test_a_broker_without_leaderships_may_stop_at_once(self) -> None:
        assert Cluster().stop(1).should_shut_down


def restart(cluster: Cluster) -> None:
    """Activate a controller in a new process, with the state of the log."""
    controller = cluster.controller
    controller.reset(controller.image, controller.state.next_offset)
    controller.activate([], in_transaction=False, kraft_version=1, now_ms=cluster.now)


class TestSeveralBrokers:
    def test_leaders_move_before_a_broker_stops(self) -> None:
        cluster = Cluster((1, 2, 3))
        cluster.create(assignments={0: [1, 2, 3]})
        assert not cluster.stop(1).should_shut_down
        assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))
        # The others have not followed that far yet.
        for other in (2, 3):
            cluster.heartbeat(other, current_metadata_offset=0)
        assert not cluster.stop(1).should_shut_down
        for other in (2, 3):
            cluster.heartbeat(other)
        assert cluster.stop(1).should_shut_down

    def test_a_session_that_expires_in_controlled_shutdown_fences_the_broker(self) -> None:
        cluster = Cluster((1, 2, 3))
        cluster.create(assignments={0: [1, 2, 3]})
        cluster.stop(1)
        assert cluster.create("too-many", 1, 3).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        cluster.run(fence_broker(cluster.controller.state, 1, cluster.epoch(1)))
        assert cluster.create("enough", 1, 3).error_code == ErrorCode.NONE
        assert cluster.stop(1).should_shut_down
        assert cluster.records == [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=cluster.epoch(1), fenced=1)
        ]

    def test_a_stopped_broker_gets_replicas_but_no_leadership(self) -> None:
        cluster = Cluster((1, 2, 3))
        cluster.create(assignments={0: [1, 2, 3]})
        cluster.stop_completely(1)
        assert cluster.create("later", 3, 3).error_code == ErrorCode.NONE
        for index in range(3):
            partition = cluster.partition("later", index)
            assert sorted(partition.replicas) == [1, 2, 3]
            assert sorted(partition.isr) == [2, 3]

    def test_a_broker_whose_session_expires_is_fenced(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [2, 1]})
        cluster.now += 9_001
        cluster.heartbeat(1)
        assert cluster.controller.state.heartbeats.timed_out == 0
        assert cluster.tick()
        assert not cluster.controller.image.cluster.is_active(2)
        assert cluster.controller.state.heartbeats.timed_out == 1
        assert (cluster.partition().leader, cluster.partition().isr) == (1, (1,))
        assert not cluster.tick()

    def test_brokers_get_a_full_session_after_a_controller_failover(self) -> None:
        cluster = Cluster((1, 2))
        cluster.now += 60_000
        restart(cluster)
        with pytest.raises(KafkaError):
            cluster.register(2, incarnation=2)
        assert cluster.register(1, incarnation=2).broker_epoch > 0

    def test_a_broker_registered_by_another_controller_must_catch_up(self) -> None:
        cluster = Cluster((1, 2))
        cluster.register(3)
        image, end = cluster.controller.image, cluster.controller.state.next_offset
        cluster.controller = Controller(config(), CLUSTER_ID, random.Random(7))
        cluster.controller.reset(image, end)
        cluster.controller.activate([], in_transaction=False, kraft_version=1, now_ms=cluster.now)
        assert cluster.heartbeat(3, current_metadata_offset=cluster.epoch(3) - 1).is_fenced
        assert not cluster.heartbeat(3, current_metadata_offset=cluster.epoch(3)).is_fenced

    def test_activation_does_not_expire_the_broker_of_a_running_node(self) -> None:
        cluster = Cluster((1, 2), own_incarnation=uid(11))
        restart(cluster)
        assert not cluster.tick()
        assert cluster.controller.image.cluster.is_active(1)

    def test_a_broker_whose_process_has_ended_is_fenced_at_once(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [2, 1]})
        epoch = cluster.epoch(2)
        cluster.run(fence_broker(cluster.controller.state, 2, epoch))
        assert not cluster.controller.image.cluster.is_active(2)
        assert (cluster.partition().leader, cluster.partition().isr) == (1, (1,))
        assert not fence_broker(cluster.controller.state, 2, epoch).records
        # It comes back before its old self is reported once more.
        cluster.register(2, incarnation=2)
        cluster.unfence(2)
        assert not fence_broker(cluster.controller.state, 2, epoch).records
        assert not fence_broker(cluster.controller.state, 9, epoch).records

    def test_an_unregistered_broker_leaves_every_isr(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [2, 1]})
        epoch = cluster.epoch(2)
        cluster.decide(unregister_broker, UnregisterBrokerRequest(broker_id=2))
        assert cluster.records[-1] == UnregisterBrokerRecord(broker_id=2, broker_epoch=epoch)
        assert cluster.partition().leader == 1
        with pytest.raises(KafkaError, match="Broker ID 2 is not currently registered"):
            cluster.decision(unregister_broker, UnregisterBrokerRequest(broker_id=2))


class TestRefusedDecisions:
    """The append was refused: the state is unchanged, and the decision can be repeated."""

    def test_a_refused_fencing_of_an_ended_broker_can_be_repeated(self) -> None:
        cluster = Cluster((1, 2))
        assert fence_broker(cluster.controller.state, 2, cluster.epoch(2)).records
        assert fence_broker(cluster.controller.state, 2, cluster.epoch(2)).records

    def test_a_refused_fencing_of_an_expired_broker_can_be_repeated(self) -> None:
        cluster = Cluster((1, 2))
        cluster.now += 9_001
        cluster.heartbeat(1)
        assert cluster.controller.run_periodic_task(cluster.now, cluster.now).records
        assert cluster.tick()
        assert not cluster.controller.image.cluster.is_active(2)

    def test_a_refused_unfencing_can_be_repeated(self) -> None:
        cluster = Cluster((1,))
        cluster.register(2)
        request = BrokerHeartbeatRequest(
            broker_id=2,
            broker_epoch=cluster.epoch(2),
            current_metadata_offset=cluster.controller.state.next_offset,
        )
        assert cluster.decision(broker_heartbeat, request).records
        cluster.unfence(2)
        assert cluster.controller.image.cluster.is_active(2)

    def test_a_refused_unregistration_keeps_the_session(self) -> None:
        cluster = Cluster((1, 2))
        cluster.decision(unregister_broker, UnregisterBrokerRequest(broker_id=2))
        assert not cluster.heartbeat(2).is_fenced


class TestLostDecisions:
    """The records were lost before the commit: the controller goes back, and brokers retry."""

    def lose(self, cluster: Cluster, decide: Callable[[], object]) -> None:
        before, offset = cluster.controller.image, cluster.controller.state.next_offset
        decide()
        cluster.controller.reset(before, offset)

    def test_a_lost_unfencing_leaves_the_broker_fenced(self) -> None:
        cluster = Cluster(brokers=())
        cluster.register(1)
        self.lose(cluster, lambda: cluster.unfence(1))
        assert not cluster.controller.image.cluster.is_active(1)
        assert not cluster.unfence(1).is_fenced
        assert cluster.controller.image.cluster.is_active(1)

    def test_a_lost_controlled_shutdown_keeps_the_leadership(self) -> None:
        cluster = Cluster()
        cluster.create()
        self.lose(cluster, lambda: cluster.stop(1))
        assert cluster.partition().leader == 1
        assert not cluster.stop(1).should_shut_down
        assert cluster.partition().leader == -1
        assert cluster.stop(1).should_shut_down

    def test_a_lost_registration_keeps_the_former_epoch(self) -> None:
        cluster = Cluster()
        epoch = cluster.epoch(1)
        cluster.stop_completely(1)
        self.lose(cluster, lambda: cluster.register(1, incarnation=2, previous_epoch=epoch))
        assert cluster.epoch(1) == epoch
        cluster.register(1, incarnation=2, previous_epoch=epoch)
        assert not cluster.unfence(1).is_fenced

    def test_a_lost_topic_does_not_collide_with_a_new_one(self) -> None:
        cluster = Cluster()
        self.lose(cluster, lambda: cluster.create("a.b"))
        assert cluster.create("a_b").error_code == ErrorCode.NONE


class TestDirectories:
    def test_a_failed_directory_removes_only_its_replicas_from_the_isr(self) -> None:
        cluster = Cluster(brokers=())
        cluster.register(1, dirs=[uid(51), uid(52)])
        cluster.unfence(1)
        cluster.create("a", 1, 1)
        cluster.create("b", 1, 1)
        assign(cluster, uid(51), "a")
        assign(cluster, uid(52), "b")
        assert cluster.partition("a").directories == (uid(51),)
        cluster.heartbeat(1, offline_log_dirs=[uid(51)])
        assert cluster.partition("a").leader == -1
        assert cluster.partition("b").leader == 1
        assert cluster.controller.image.cluster.brokers[1].directories == (uid(52),)

    def test_a_directory_that_fails_before_unfencing_gets_no_leader(self) -> None:
        cluster = Cluster(brokers=())
        cluster.register(1, dirs=[uid(51), uid(52)])
        cluster.unfence(1)
        for name, directory in (("a", uid(51)), ("b", uid(52))):
            cluster.create(name, 1, 1)
            assign(cluster, directory, name)
        cluster.stop_completely(1)
        cluster.register(1, incarnation=2, previous_epoch=cluster.epoch(1), dirs=[uid(51), uid(52)])
        assert cluster.heartbeat(1, offline_log_dirs=[uid(51)]).is_fenced
        assert not cluster.heartbeat(1, offline_log_dirs=[uid(51)]).is_fenced
        assert (cluster.partition("a").leader, cluster.partition("b").leader) == (-1, 1)

    def test_cordoned_directories_are_recorded_once(self) -> None:
        cluster = Cluster()
        cluster.heartbeat(1, cordoned_log_dirs=[])
        assert cluster.records == [
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=cluster.epoch(1), cordoned_log_dirs=[])
        ]
        cluster.heartbeat(1, cordoned_log_dirs=[])
        assert cluster.records == []
        cluster.heartbeat(1, cordoned_log_dirs=[uid(101)])
        assert cluster.create().error_code == ErrorCode.INVALID_REPLICATION_FACTOR

    def test_unknown_partitions_are_not_assigned(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1]})
        assert assign(cluster, uid(101), "orders", broker=2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert assign(cluster, uid(101), "orders", index=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert assign(cluster, uid(101), None) == ErrorCode.UNKNOWN_TOPIC_ID


def assign(cluster: Cluster, directory: Uuid, topic: str | None, *, broker: int = 1, index: int = 0) -> int:
    from moldau.protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        RequestDirectoryData,
        RequestPartitionData,
        RequestTopicData,
    )

    topic_id = uid(9) if topic is None else cluster.controller.image.topics.by_name[topic].id
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=cluster.epoch(broker),
        directories=[
            RequestDirectoryData(
                id=directory,
                topics=[
                    RequestTopicData(
                        topic_id=topic_id, partitions=[RequestPartitionData(partition_index=index)]
                    )
                ],
            )
        ],
    )
    response = cluster.decide(assign_replicas_to_dirs, request)
    return response.directories[0].topics[0].partitions[0].error_code


def test_producer_ids_are_allocated_in_blocks() -> None:
    cluster = Cluster()
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.epoch(1))
    blocks = [cluster.decide(allocate_producer_ids, request) for _ in range(3)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    with pytest.raises(KafkaError) as failure:
        cluster.decision(allocate_producer_ids, AllocateProducerIdsRequest(broker_id=1, broker_epoch=1))
    assert failure.value.code is ErrorCode.STALE_BROKER_EPOCH
