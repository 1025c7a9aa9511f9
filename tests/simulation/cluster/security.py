"""Security in a simulated cluster: every connection logs in, ACLs decide, and an intruder tries to get in.

Nodes log in to each other as the super user `node`. Clients are the user `client`, whose ACLs the super user
`admin` creates. The intruder is a known user without any ACL: at any time, also while nodes restart and have
not loaded the ACLs yet, it changes nothing and learns nothing.
"""

from __future__ import annotations

import asyncio
from random import Random

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.wire.security import SecuritySettings
from moldau.network.connector import Connector
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.acl.loading import STANDARD_AUTHORIZER
from tests.harness.wire.batches import batch
from tests.simulation.cluster.client import ClusterClient, check
from tests.simulation.cluster.history import History

NODE, ADMIN, CLIENT, INTRUDER = "node", "admin", "client", "intruder"
_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_ACLS_VERSION, _METADATA_VERSION, _PRODUCE_VERSION, _CREATE_TOPICS_VERSION = 3, 12, 12, 7
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
#: The user `client` has all rights to these resources, and none to the cluster.
_GRANTED = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)


def secured_config() -> dict[str, str]:
    """Return the settings of nodes whose listeners all require a login."""
    users = " ".join(f'user_{user}="{user}-secret"' for user in (NODE, ADMIN, CLIENT, INTRUDER))
    jaas = f'{_LOGIN_MODULE} required username="{NODE}" password="{NODE}-secret" {users};'
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{NODE};User:{ADMIN}",
    }


def login(user: str) -> Connector:
    """Return how a user connects."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_LOGIN_MODULE} required username="{user}" password="{user}-secret";',
    }
    return SecuritySettings.from_properties(properties).connector()


async def grant_clients(admin: ClusterClient) -> None:
    """Allow the user `client` everything but changes of the cluster."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=kind,
                resource_name="*",
                resource_pattern_type=PatternType.LITERAL,
                principal=f"User:{CLIENT}",
                host="*",
                operation=AclOperation.ALL,
                permission_type=PermissionType.ALLOW,
            )
            for kind in _GRANTED
        ]
    )

    async def create() -> None:
        for result in (await admin.call_any(request, _ACLS_VERSION)).results:
            check(result.error_code)

    await admin.persist(create)


class Intruder:
    """A user without ACLs. Its records are not in the history: one that is read is *made up*."""

    def __init__(
        self, client: ClusterClient, history: History, random: Random, targets: list[TopicPartition]
    ) -> None:
        self._client = client
        self._history = history
        self._random = random
        self._targets = targets

    async def run(self) -> None:
        attempts = (self._produce, self._list_topics, self._create_topic)
        while not self._history.stopping:
            try:
                await self._random.choice(attempts)()
                self._history.counts["denied"] += 1
            except KafkaError:
                self._client.forget()  # the node is not reachable or not ready
            await asyncio.sleep(self._random.uniform(0.1, 0.8))

    async def _produce(self) -> None:
        target = self._random.choice(self._targets)
        data = PartitionProduceData(
            index=target.partition, records=memoryview(batch([(b"k", b"intruder")], timestamp=0))
        )
        topic = TopicProduceData(name=target.topic, partition_data=[data])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[topic])
        answer = await self._client.call_any(request, _PRODUCE_VERSION)
        self._must_be_denied(answer.responses[0].partition_responses[0].error_code, "produce")

    async def _list_topics(self) -> None:
        answer = await self._client.call_any(MetadataRequest(topics=None), _METADATA_VERSION)
        assert not answer.topics, "an intruder learns nothing: topics are listed"

    async def _create_topic(self) -> None:
        topic = CreatableTopic(name="intrusion", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        answer = await self._client.call_any(request, _CREATE_TOPICS_VERSION)
        code = answer.topics[0].error_code
        if code == ErrorCode.REQUEST_TIMED_OUT or ErrorCode(code).retriable:
            raise KafkaError(ErrorCode(code))
        self._must_be_denied(code, "create a topic")

    @staticmethod
    def _must_be_denied(error_code: int, what: str) -> None:
        assert error_code == _DENIED, f"an intruder changes nothing: {what} was answered {error_code}"
