"""A cluster lives through random events; whatever happens, its metadata keeps making sense."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from moldau.base.errors import KafkaError
from moldau.controller.brokers.lifecycle import unregister_broker
from moldau.controller.partitions.elections import elect_leaders
from moldau.controller.partitions.index import Entry
from moldau.controller.partitions.isr import alter_partition
from moldau.controller.partitions.reassignment import alter_partition_reassignments
from moldau.controller.topics.lifecycle import delete_topics
from moldau.controller.topics.partitions import create_partitions
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import NO_LEADER, MetadataImage, PartitionRegistration
from moldau.metadata.image_records import image_records
from moldau.metadata.records import MetadataRecord, decode_record, encode_record
from moldau.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.statemachine.decision import Decision
from tests.unit.controller.harness import Cluster, R

BROKERS = (1, 2, 3, 4)


class Life(Cluster):
    """Notes every record and checks the state after each decision."""

    def __init__(self, seed: int, elr: int) -> None:
        self.random = random.Random(seed)
        self.history: list[MetadataRecord] = []
        self.incarnations = dict.fromkeys(BROKERS, 1)
        super().__init__(BROKERS, levels={"eligible.leader.replicas.version": elr})

    def run(self, decision: Decision[MetadataRecord, R]) -> R:
        before = self.controller.image
        response = super().run(decision)
        self.history += decision.records
        check(before, self.controller.image)
        self.check_index()
        return response

    def check_index(self) -> None:
        """What brokers hold by the index, which follows every step, is what the image says."""
        index = self.controller.state.index
        everything = [
            (topic.name, at, each) for topic, at, each in self.controller.image.topics.all_partitions()
        ]

        def names(entries: Iterable[Entry]) -> list[tuple[str, int]]:
            return sorted((topic.name, at) for topic, at, _ in entries)

        for broker in BROKERS:
            held = [(name, at) for name, at, each in everything if broker in each.isr + each.elr]
            assert names(index.held_by(broker)) == sorted(held)
            in_sync = [(name, at) for name, at, each in everything if broker in each.isr]
            assert names(index.in_sync(broker)) == sorted(in_sync)
            assert index.leads(broker) == any(each.leader == broker for _, _, each in everything)
        leaderless = [(name, at) for name, at, each in everything if each.leader == NO_LEADER]
        assert names(index.leaderless()) == sorted(leaderless)
        imbalanced = [(name, at) for name, at, each in everything if each.leader != each.replicas[0]]
        assert names(index.imbalanced()) == sorted(imbalanced)

    def step(self) -> None:
        event = self.random.choice(EVENTS)
        self.now += self.random.randrange(4000)
        try:
            getattr(self, event)()
        except KafkaError:
            assert event in ("come_back", "stop_orderly", "beat", "report_isr", "unregister")

    def some_broker(self) -> int:
        return self.random.choice(BROKERS)

    def some_topic(self) -> str | None:
        names = sorted(self.controller.image.topics.by_name)
        return self.random.choice(names) if names else None

    def new_topic(self) -> None:
        minimum = str(self.random.randint(1, 3))
        unclean = self.random.choice(("true", "false"))
        configs = {"min.insync.replicas": minimum, "unclean.leader.election.enable": unclean}
        self.create(
            f"t{self.random.randrange(6)}",
            self.random.randint(1, 3),
            self.random.randint(1, 4),
            configs=configs,
        )

    def drop_topic(self) -> None:
        topic = self.some_topic()
        if topic is not None and self.random.random() < 0.3:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)])
            self.decide(delete_topics, request, version=6)

    def more_partitions(self) -> None:
        topic = CreatePartitionsTopic(
            name=self.some_topic() or "x", count=self.random.randint(1, 5), assignments=None
        )
        self.decide(create_partitions, CreatePartitionsRequest(topics=[topic]))

    def beat(self) -> None:
        self.heartbeat(self.some_broker(), want_fence=self.random.random() < 0.1)

    def beat_all(self) -> None:
        for broker in self.controller.image.cluster.brokers:
            self.heartbeat(broker)

    def stop_orderly(self) -> None:
        self.stop(self.some_broker())

    def come_back(self) -> None:
        broker = self.some_broker()
        self.incarnations[broker] += 1
        known = self.controller.image.cluster.brokers.get(broker)
        clean = known is not None and self.random.random() < 0.5
        previous = known.epoch if known is not None and clean else -1
        self.register(broker, incarnation=self.incarnations[broker] % 9, previous_epoch=previous)

    def unregister(self) -> None:
        if self.random.random() < 0.2:
            self.decide(unregister_broker, UnregisterBrokerRequest(broker_id=self.some_broker()))

    def upkeep(self) -> None:
        for _ in range(5):
            if not self.tick():
                return

    def elect(self) -> None:
        request = ElectLeadersRequest(election_type=self.random.randint(0, 1), topic_partitions=None)
        self.decide(elect_leaders, request)

    def report_isr(self) -> None:
        name = self.some_topic()
        if name is None:
            return
        topic = self.controller.image.topics.by_name[name]
        index, partition = self.random.choice(sorted(topic.partitions.items()))
        others = [replica for replica in partition.replicas if self.random.random() < 0.6]
        isr = list(dict.fromkeys([partition.leader, *others]))
        data = RequestPartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr],
        )
        request = AlterPartitionRequest(
            broker_id=partition.leader,
            broker_epoch=self.epoch(partition.leader),
            topics=[RequestTopicData(topic_id=topic.id, partitions=[data])],
        )
        self.decide(alter_partition, request)

    def reassign(self) -> None:
        name = self.some_topic()
        if name is None:
            return
        index = self.random.choice(sorted(self.controller.image.topics.by_name[name].partitions))
        target = (
            self.random.sample(BROKERS, self.random.randint(1, 3)) if self.random.random() < 0.8 else None
        )
        partition = ReassignablePartition(partition_index=index, replicas=target)
        topics = [ReassignableTopic(name=name, partitions=[partition])]
        self.decide(alter_partition_reassignments, AlterPartitionReassignmentsRequest(topics=topics))


EVENTS = [name for name in vars(Life) if not name.startswith(("_", "some", "run", "step"))]


def check(before: MetadataImage, after: MetadataImage) -> None:
    for topic, index, partition in after.topics.all_partitions():
        check_partition(partition, elr_enabled=after.features.elr_enabled)
        old = before.topics.partition(topic.id, index)
        if old is not None and old != partition:
            assert partition.partition_epoch > old.partition_epoch
            assert partition.leader_epoch >= old.leader_epoch
            if partition.leader != old.leader:
                assert partition.leader_epoch > old.leader_epoch


def check_partition(partition: PartitionRegistration, *, elr_enabled: bool) -> None:
    replicas = set(partition.replicas)
    assert len(replicas) == len(partition.replicas) == len(partition.directories) > 0
    assert len(set(partition.isr)) == len(partition.isr)
    assert set(partition.isr) <= replicas
    assert set(partition.elr) <= replicas - set(partition.isr)
    assert set(partition.adding) <= replicas and set(partition.removing) <= replicas
    if partition.leader != NO_LEADER:
        assert partition.leader in partition.isr
        assert not partition.last_known_elr
    if not elr_enabled:
        assert partition.isr and not partition.elr and not partition.last_known_elr


@pytest.mark.parametrize("elr", [0, 1])
@pytest.mark.parametrize("seed", [*range(12), 60])
def test_invariants_hold_in_a_random_history(seed: int, elr: int) -> None:
    life = Life(seed, elr)
    for _ in range(200):
        life.step()
    final = life.controller.image
    # The log tells the same story from the beginning, and so does a snapshot.
    for story in (life.history, list(image_records(final))):
        delta = MetadataDelta(MetadataImage.empty())
        delta.replay_all(decode_record(encode_record(record, 30)) for record in story)
        assert delta.apply(final.offset, final.epoch) == final


def test_random_histories_cover_all_events() -> None:
    life = Life(1, 1)
    for _ in range(300):
        life.step()
    kinds = {type(record).__name__ for record in life.history}
    assert {"PartitionChangeRecord", "BrokerRegistrationChangeRecord", "RemoveTopicRecord"} <= kinds
