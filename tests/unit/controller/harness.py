"""A controller without a log: decided records are replayed at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from moldau.base.ids import ZERO_UUID, Uuid
from moldau.config.broker.config import BrokerConfig
from moldau.controller.brokers.lifecycle import broker_heartbeat, register_broker
from moldau.controller.configs.alter import incremental_alter_configs
from moldau.controller.controller import Controller, Decide
from moldau.controller.state import DecisionContext
from moldau.controller.topics.lifecycle import create_topics
from moldau.metadata.features import default_levels, supported_features
from moldau.metadata.image import PartitionRegistration
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.apis import APIS
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored.metadata import FeatureLevelRecord
from moldau.statemachine.decision import Decision
from tests.unit.metadata.builders import uid

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
Q = TypeVar("Q", bound=Message)
R = TypeVar("R")


def config(**settings: object) -> BrokerConfig:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "log.dirs": "/data",
    }
    properties |= {name.replace("_", "."): str(value) for name, value in settings.items()}
    return BrokerConfig.from_properties(properties)


class Cluster:
    def __init__(
        self,
        brokers: Sequence[int] = (1,),
        levels: dict[str, int] | None = None,
        own_incarnation: Uuid = ZERO_UUID,
        **settings: object,
    ):
        self.controller = Controller(config(**settings), CLUSTER_ID, random.Random(7), own_incarnation)
        self.now = 1_000_000
        self.records: list[MetadataRecord] = []
        bootstrap = [
            FeatureLevelRecord(name=name, feature_level=level)
            for name, level in (default_levels() | (levels or {})).items()
        ]
        self.run(self.controller.activate(bootstrap, in_transaction=False, kraft_version=1, now_ms=self.now))
        for broker in brokers:
            self.register(broker)
            self.unfence(broker)

    def decision(self, decide: Decide[Q, R], request: Q, version: int = -1) -> Decision[MetadataRecord, R]:
        """Decide a request, by default in its newest version, without replaying the records."""
        api_version = APIS[request.API_KEY].max_version if version < 0 else version
        return self.controller.decide(decide, request, DecisionContext(api_version, self.now, self.now))

    def decide(self, decide: Decide[Q, R], request: Q, version: int = -1) -> R:
        return self.run(self.decision(decide, request, version))

    def run(self, decision: Decision[MetadataRecord, R]) -> R:
        """Replay a decision; its records must be writable, too."""
        state = self.controller.state
        self.records = list(decision.records)
        for record in decision.records:
            encode_record(record, state.metadata_version)
        if decision.records:
            self.controller.replay(decision.records, state.next_offset)
        if decision.on_appended is not None:
            decision.on_appended()
        return decision.response

    def tick(self) -> bool:
        """Run one step of the periodic tasks."""
        return self.run(self.controller.run_periodic_task(self.now, self.now))

    # Brokers.

    def register(
        self,
        broker: int,
        *,
        incarnation: int = 1,
        previous_epoch: int = -1,
        rack: str | None = None,
        host: str = "localhost",
        dirs: Sequence[Uuid] | None = None,
        **changes: object,
    ) -> BrokerRegistrationResponse:
        levels = supported_features(self.controller.image.features.levels)
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=CLUSTER_ID,
            incarnation_id=uid(broker * 10 + incarnation),
            listeners=[Listener(name="PLAINTEXT", host=host, port=9092)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in levels.items()
            ],
            rack=rack,
            log_dirs=list(dirs or [uid(100 + broker)]),
            previous_broker_epoch=previous_epoch,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return self.decide(register_broker, request)

    def epoch(self, broker: int) -> int:
        """Of a broker that is not registered: -1."""
        registration = self.controller.image.cluster.brokers.get(broker)
        return -1 if registration is None else registration.epoch

    def heartbeat(self, broker: int, **values: object) -> BrokerHeartbeatResponse:
        fields: dict[str, object] = {
            "broker_id": broker,
            "broker_epoch": self.epoch(broker),
            "current_metadata_offset": self.controller.state.next_offset - 1,
        }
        request = BrokerHeartbeatRequest(**(fields | values))  # type: ignore[arg-type]
        return self.decide(broker_heartbeat, request)

    def unfence(self, broker: int) -> BrokerHeartbeatResponse:
        return self.heartbeat(broker)

    def stop(self, broker: int) -> BrokerHeartbeatResponse:
        return self.heartbeat(broker, want_shut_down=True)

    def stop_completely(self, broker: int) -> None:
        """Until the controller lets it go, which waits for the others to follow."""
        for _ in range(3):
            if self.stop(broker).should_shut_down:
                return
            for other in self.controller.image.cluster.brokers:
                if other != broker:
                    self.heartbeat(other)
        raise AssertionError(f"broker {broker} may not stop")

    def restart_cleanly(self, broker: int) -> None:
        self.stop_completely(broker)
        self.register(broker, incarnation=2, previous_epoch=self.epoch(broker))
        self.unfence(broker)

    # Topics.

    def create(
        self,
        name: str = "orders",
        partitions: int = -1,
        factor: int = -1,
        *,
        assignments: dict[int, list[int]] | None = None,
        configs: dict[str, str | None] | None = None,
        validate_only: bool = False,
    ):
        topic = new_topic(name, partitions, factor, assignments, configs)
        request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
        return self.decide(create_topics, request).topics[0]

    def partition(self, topic: str = "orders", index: int = 0) -> PartitionRegistration:
        return self.controller.image.topics.by_name[topic].partitions[index]

    def alter(self, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False):
        resource = AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return self.decide(incremental_alter_configs, request).responses[0]


def new_topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
