"""Elections, in-sync replicas and reassignments."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.controller.brokers.lifecycle import fence_broker
from moldau.controller.partitions.elections import elect_leaders
from moldau.controller.partitions.isr import alter_partition
from moldau.controller.partitions.reassignment import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from moldau.metadata.image import RECOVERED, RECOVERING, ResourceType
from moldau.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from moldau.protocol.stored.metadata import PartitionChangeRecord
from tests.unit.controller.harness import Cluster
from tests.unit.metadata.builders import uid

PREFERRED, UNCLEAN = 0, 1
SET = 0


def elect(cluster: Cluster, kind: int, topic: str | None = "orders", index: int = 0):
    asked = None if topic is None else [TopicPartitions(topic=topic, partitions=[index])]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
    return cluster.decide(elect_leaders, request).replica_election_results


def alter(
    cluster: Cluster, broker: int, isr: list[int], *, epochs: dict[int, int] | None = None, **values: int
) -> ResponsePartitionData:
    partition = cluster.partition()
    fields: dict[str, int] = {
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "leader_recovery_state": partition.leader_recovery_state,
    }
    members = [BrokerState(broker_id=b, broker_epoch=(epochs or {}).get(b, -1)) for b in isr]
    data = RequestPartitionData(new_isr_with_epochs=members, **(fields | values))  # type: ignore[arg-type]
    topic = cluster.controller.image.topics.by_name["orders"]
    request = AlterPartitionRequest(
        broker_id=broker,
        broker_epoch=cluster.epoch(broker),
        topics=[RequestTopicData(topic_id=topic.id, partitions=[data])],
    )
    return cluster.decide(alter_partition, request).topics[0].partitions[0]


def reassign(
    cluster: Cluster, replicas: list[int] | None, *, index: int = 0, topic: str = "orders", **values: bool
):
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=topic, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)]
            )
        ],
        **values,  # type: ignore[arg-type]
    )
    return cluster.decide(alter_partition_reassignments, request).responses[0].partitions[0]


class TestElections:
    def test_election_not_needed(self) -> None:
        cluster = Cluster()
        cluster.create()
        for kind in (PREFERRED, UNCLEAN):
            (result,) = elect(cluster, kind)
            assert result.partition_result[0].error_code == ErrorCode.ELECTION_NOT_NEEDED
            assert (
                result.partition_result[0].error_message == "Leader election not needed for topic partition."
            )

    def test_an_election_of_all_partitions_leaves_out_those_that_need_none(self) -> None:
        cluster = Cluster()
        cluster.create()
        (result,) = elect(cluster, PREFERRED, topic=None)
        assert (result.topic, result.partition_result) == ("orders", [])

    def test_unknown_partitions_are_refused(self) -> None:
        cluster = Cluster()
        cluster.create()
        for topic, index, message in (
            ("nobody", 0, "No such topic as nobody"),
            ("orders", 7, "No such partition as orders-7"),
        ):
            (result,) = elect(cluster, PREFERRED, topic, index)
            answer = result.partition_result[0]
            assert (answer.error_code, answer.error_message) == (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                message,
            )

    def test_an_unknown_election_type_is_refused(self) -> None:
        (result,) = elect(Cluster(), 7)
        answer = result.partition_result[0]
        assert (answer.error_code, answer.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Unknown election type 7",
        )

    def test_the_preferred_leader_is_elected(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [2, 1]})
        cluster.restart_cleanly(2)
        assert cluster.partition().leader == 1
        (result,) = elect(cluster, PREFERRED)
        assert result.partition_result[0].error_code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        alter(cluster, 1, [1, 2])
        (result,) = elect(cluster, PREFERRED)
        assert result.partition_result[0].error_code == ErrorCode.NONE
        assert cluster.partition().leader == 2

    def test_preferred_leaders_are_elected_periodically(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [2, 1]})
        cluster.restart_cleanly(2)
        alter(cluster, 1, [1, 2])
        for _ in range(31):
            cluster.now += 10_000
            cluster.heartbeat(1)
            cluster.heartbeat(2)
            cluster.tick()
            cluster.tick()
        assert cluster.partition().leader == 2

    def test_an_unclean_leader_is_elected(self) -> None:
        cluster = Cluster((1, 2), levels={"eligible.leader.replicas.version": 0})
        cluster.create(assignments={0: [2, 1]})
        alter(cluster, 2, [2])
        cluster.stop_completely(2)
        assert (cluster.partition().leader, cluster.partition().isr) == (-1, (2,))
        (result,) = elect(cluster, UNCLEAN)
        assert result.partition_result[0].error_code == ErrorCode.NONE
        partition = cluster.partition()
        assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), RECOVERING)

    def test_unclean_leaders_are_elected_if_the_topic_allows_it(self) -> None:
        cluster = Cluster((1, 2), levels={"eligible.leader.replicas.version": 0})
        cluster.create(assignments={0: [2, 1]}, configs={"unclean.leader.election.enable": "true"})
        alter(cluster, 2, [2])
        cluster.stop(2)
        assert cluster.partition().leader == 1

    def test_unclean_leaders_are_elected_once_the_topic_allows_it(self) -> None:
        levels = {"eligible.leader.replicas.version": 0}
        cluster = Cluster((1, 2), levels, unclean_leader_election_interval_ms=5_000)
        cluster.create(assignments={0: [2, 1]})
        alter(cluster, 2, [2])
        cluster.stop_completely(2)
        cluster.alter(ResourceType.TOPIC, "orders", ("unclean.leader.election.enable", SET, "true"))
        cluster.run(cluster.controller.run_periodic_task(cluster.now + 4_999, cluster.now + 4_999))
        assert cluster.partition().leader == -1
        cluster.run(cluster.controller.run_periodic_task(cluster.now + 5_000, cluster.now + 5_000))
        assert cluster.partition().leader == 1

    def test_without_an_active_replica_no_leader_is_elected(self) -> None:
        cluster = Cluster()
        cluster.create()
        cluster.stop(1)
        (result,) = elect(cluster, UNCLEAN)
        assert result.partition_result[0].error_code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class TestEligibleLeaders:
    def test_a_replica_that_leaves_an_isr_below_the_minimum_becomes_eligible(self) -> None:
        cluster = Cluster((1, 2, 3))
        cluster.create(assignments={0: [1, 2, 3]}, configs={"min.insync.replicas": "2"})
        alter(cluster, 1, [1])
        assert cluster.partition().elr == (2, 3)
        alter(cluster, 1, [1, 2])
        assert cluster.partition().elr == ()

    def test_an_eligible_replica_leads_if_the_isr_is_empty(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1, 2]}, configs={"min.insync.replicas": "2"})
        alter(cluster, 1, [1])
        cluster.stop(1)
        partition = cluster.partition()
        assert (partition.leader, partition.isr, partition.elr) == (2, (2,), (1,))
        assert partition.leader_recovery_state == RECOVERED

    def test_a_new_min_insync_replicas_clears_the_elr(self) -> None:
        cluster = Cluster((1, 2, 3))
        cluster.create(assignments={0: [1, 2, 3]}, configs={"min.insync.replicas": "3"})
        alter(cluster, 1, [1])
        assert cluster.partition().elr == (2, 3)
        cluster.alter(2, "orders", ("min.insync.replicas", 0, "1"))
        assert cluster.partition().elr == ()

    def test_no_leader_is_not_remembered_as_the_last_leader(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1]}, configs={"unclean.leader.election.enable": "true"})
        reassign(cluster, [1, 2])
        for broker in (2, 1):
            cluster.run(fence_broker(cluster.controller.state, broker, cluster.epoch(broker)))
        assert cluster.partition().last_known_elr == (1,)
        cluster.alter(ResourceType.TOPIC, "orders", ("min.insync.replicas", SET, "1"))
        reassign(cluster, None)
        partition = cluster.partition()
        assert (partition.replicas, partition.leader, partition.last_known_elr) == ((1,), -1, ())


class TestAlterPartition:
    def test_the_isr_shrinks_and_expands(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1, 2]})
        answer = alter(cluster, 1, [1])
        assert (answer.error_code, answer.isr, answer.partition_epoch, answer.leader_epoch) == (0, [1], 1, 0)
        answer = alter(cluster, 1, [1, 2], epochs={2: cluster.epoch(2)})
        assert (answer.isr, answer.partition_epoch) == ([1, 2], 2)

    def test_an_unchanged_isr_writes_no_records(self) -> None:
        cluster = Cluster()
        cluster.create()
        answer = alter(cluster, 1, [1])
        assert (answer.error_code, answer.partition_epoch, cluster.records) == (0, 0, [])

    def test_a_recovering_leader_recovers(self) -> None:
        cluster = Cluster((1, 2), levels={"eligible.leader.replicas.version": 0})
        cluster.create(assignments={0: [2, 1]})
        alter(cluster, 2, [2])
        cluster.stop(2)
        elect(cluster, UNCLEAN)
        answer = alter(cluster, 1, [1], leader_recovery_state=RECOVERED)
        assert answer.leader_recovery_state == RECOVERED
        refused = alter(cluster, 1, [1], leader_recovery_state=RECOVERING)
        assert refused.error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(
        ("isr", "values", "code"),
        [
            ([1], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
            ([1], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
            ([1], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
            ([1], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
            ([], {}, ErrorCode.INVALID_REQUEST),
            ([2], {}, ErrorCode.INVALID_REQUEST),
            ([1, 1], {}, ErrorCode.INVALID_REQUEST),
            ([1, 3], {}, ErrorCode.INVALID_REQUEST),
            ([1], {"partition_index": 4}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ],
    )
    def test_stale_and_unknown_requests_are_refused(
        self, isr: list[int], values: dict[str, int], code: ErrorCode
    ) -> None:
        cluster = Cluster((1, 2, 3))
        cluster.create(assignments={0: [1, 2]})
        assert alter(cluster, 1, isr, **values).error_code == code
        assert cluster.records == []

    def test_only_the_leader_may_alter_the_isr(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1, 2]})
        assert alter(cluster, 2, [1, 2]).error_code == ErrorCode.INVALID_REQUEST

    def test_ineligible_replicas_are_refused(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1, 2]})
        alter(cluster, 1, [1])
        assert alter(cluster, 1, [1, 2], epochs={2: 1}).error_code == ErrorCode.INELIGIBLE_REPLICA
        cluster.stop(2)
        assert alter(cluster, 1, [1, 2]).error_code == ErrorCode.INELIGIBLE_REPLICA

    def test_a_smaller_isr_bumps_the_leader_epoch_in_old_metadata_versions(self) -> None:
        levels = {"metadata.version": 11, "eligible.leader.replicas.version": 0}
        cluster = Cluster((1, 2), levels=levels)
        cluster.create(assignments={0: [1, 2]})
        assert alter(cluster, 1, [1]).leader_epoch == 1
        assert alter(cluster, 1, [1, 2]).leader_epoch == 1


class TestReassignment:
    def test_a_partition_is_reassigned_to_another_broker(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1]})
        assert reassign(cluster, [2]).error_code == ErrorCode.NONE
        partition = cluster.partition()
        assert (partition.replicas, partition.adding, partition.removing) == ((2, 1), (2,), (1,))
        assert partition.directories == (uid(102), uid(101))
        listed = cluster.decide(list_partition_reassignments, ListPartitionReassignmentsRequest())
        ongoing = listed.topics[0].partitions[0]
        assert (ongoing.replicas, ongoing.adding_replicas, ongoing.removing_replicas) == ([2, 1], [2], [1])
        # The new replica is in sync: the reassignment is complete and the old leader hears of it.
        answer = alter(cluster, 1, [1, 2])
        assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
        partition = cluster.partition()
        assert (partition.replicas, partition.isr, partition.leader) == ((2,), (2,), 2)
        assert not partition.is_reassigning
        assert not cluster.decide(list_partition_reassignments, ListPartitionReassignmentsRequest()).topics

    def test_a_remaining_inactive_replica_is_not_awaited(self) -> None:
        cluster = Cluster((1, 2, 3, 4))
        cluster.create(assignments={0: [1, 2, 3]})
        cluster.run(fence_broker(cluster.controller.state, 2, cluster.epoch(2)))
        reassign(cluster, [1, 2, 4])
        assert cluster.partition().is_reassigning
        alter(cluster, 1, [1, 3, 4])
        partition = cluster.partition()
        assert (partition.replicas, partition.isr) == ((1, 2, 4), (1, 4))
        assert not partition.is_reassigning

    def test_a_reassignment_to_fewer_replicas_awaits_all_remaining_ones(self) -> None:
        cluster = Cluster((1, 2, 3, 4))
        cluster.create(assignments={0: [1, 2, 3]})
        alter(cluster, 1, [1, 3])
        reassign(cluster, [1, 2])
        assert cluster.partition().is_reassigning
        alter(cluster, 1, [1, 2, 3])
        partition = cluster.partition()
        assert (partition.replicas, partition.isr) == ((1, 2), (1, 2))
        # Two go, one comes: the one that comes is not enough.
        alter(cluster, 1, [1])
        reassign(cluster, [4])
        assert cluster.partition().is_reassigning
        alter(cluster, 1, [1, 4])
        assert (cluster.partition().replicas, cluster.partition().leader) == ((4,), 4)

    def test_a_reorder_is_complete_at_once(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1, 2]})
        assert reassign(cluster, [2, 1]).error_code == ErrorCode.NONE
        assert cluster.partition().replicas == (2, 1)
        assert not cluster.partition().is_reassigning

    def test_a_reassignment_to_the_current_replicas_changes_nothing(self) -> None:
        cluster = Cluster()
        cluster.create()
        assert reassign(cluster, [1]).error_code == ErrorCode.NONE
        assert cluster.records == []

    def test_a_reassignment_is_cancelled(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1]})
        none = reassign(cluster, None)
        assert none.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        reassign(cluster, [2])
        assert reassign(cluster, None).error_code == ErrorCode.NONE
        partition = cluster.partition()
        assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)

    def test_removing_a_replica_bumps_the_leader_epoch(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1, 2]})
        reassign(cluster, [1])
        assert (cluster.partition().replicas, cluster.partition().leader_epoch) == ((1,), 1)
        assert cluster.records == [
            PartitionChangeRecord(
                partition_id=0,
                topic_id=cluster.controller.image.topics.by_name["orders"].id,
                isr=[1],
                leader=1,
                replicas=[1],
                directories=[uid(101)],
            )
        ]

    @pytest.mark.parametrize(
        ("target", "values", "code", "message"),
        [
            ([9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "includes broker 9"),
            ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
            ([1, 1], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
            ([1], {"index": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition orders:3."),
            ([1], {"topic": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named x."),
            (
                [1, 9],
                {"allow_replication_factor_change": False},
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "includes broker 9",
            ),
            (
                [1, 2],
                {"allow_replication_factor_change": False},
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "The replication factor is changed from 1 to 2",
            ),
        ],
    )
    def test_invalid_reassignments_are_refused(
        self, target: list[int], values: dict, code: ErrorCode, message: str
    ) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1]})
        answer = reassign(cluster, target, **values)
        assert answer.error_code == code
        assert message in (answer.error_message or "")

    def test_reassignments_are_listed_by_topic(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create(assignments={0: [1]})
        reassign(cluster, [2])
        for name, indexes, found in (("orders", [0], 1), ("orders", [1], 0), ("nobody", [0], 0)):
            topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)]
            request = ListPartitionReassignmentsRequest(topics=topics)
            assert len(cluster.decide(list_partition_reassignments, request).topics) == found
