"""A broker that is prepared for all variants: their users, topics, groups and ACLs are created once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.protocol.schema import Message
from tests.harness.nodes.authorized import ADMIN, authorized_cluster, password_of
from tests.harness.security.authorization import streams_groups
from tests.harness.security.authorization.case import CLOSED, Acl, Outcome, Variant, World
from tests.harness.security.authorization.groups import GROUP, TRANSACTION, offset_commit
from tests.harness.security.authorization.share_groups import heartbeat
from tests.harness.security.authorization.tokens import create as create_token
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request
from tests.harness.wire.wire import Wire

_ACLS_PER_REQUEST = 200


def settings(variants: Iterable[Variant]) -> dict[str, str]:
    """Return the settings of a node that knows the user of every variant, also on the controller listener."""
    return {
        **authorized_cluster([variant.user for variant in variants]),
        "delegation.token.secret.key": "a secret of the tests",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.consumer.max.session.timeout.ms": "1800000",
        "group.consumer.session.timeout.ms": "1800000",
        "group.share.max.session.timeout.ms": "1800000",
        "group.share.session.timeout.ms": "1800000",
        # The refused logins of a test must not be delayed.
        "connection.failed.authentication.delay.ms": "0",
    }


def log_in(bootstrap: str, user: str) -> Wire:
    wire = Wire(bootstrap, timeout=30)
    assert wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{user}\0{password_of(user)}".encode()
    answer = wire.call(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert answer.error_code == 0, answer
    return wire


class PreparedBroker:
    def __init__(self, bootstrap: str, controller: str, variants: Sequence[Variant]) -> None:
        """`bootstrap` and `controller` are the addresses of both listeners."""
        self._bootstrap = bootstrap
        self._controller = controller
        self._variants = variants
        self.topic_ids: dict[str, bytes] = {}
        self.has_share_assignment = True
        with log_in(bootstrap, ADMIN) as admin:
            self._admin = admin
            self._create_topics()
            self._create_acls()
            self._create_groups()

    def outcome(self, variant: Variant) -> Outcome:
        """Send the request of a variant as its user; return what the user observes."""
        response = self.response(variant)
        return CLOSED if response is None else variant.case.observe(response)

    def response(self, variant: Variant) -> Any:
        """Return the response to the request of a variant; None if the broker closes the connection."""
        world = World(variant.user, self.topic_ids)
        address = self._controller if variant.case.controller else self._bootstrap
        with log_in(address, variant.user) as wire:
            try:
                return wire.call(variant.case.request(world), variant.case.version)
            except ConnectionError:
                return None

    # Preparation.

    def _create_topics(self) -> None:
        names = ["orders", "secrets", *self._names("topics")]
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        created = self._call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        assert [each.error_code for each in created.topics] == [0] * len(names), created
        eventually(
            lambda: set(names) <= {each.name for each in self._topics()}, what="the topics are visible"
        )
        self.topic_ids.update({each.name: each.topic_id for each in self._topics()})
        eventually(lambda: self._produced() == 0, what="orders accepts records")

    def _topics(self) -> Any:
        return self._call(MetadataRequest(topics=None), 12).topics

    def _produced(self) -> int:
        response = self._call(produce_request("orders", batch()), 12)
        code: int = response.responses[0].partition_responses[0].error_code
        return code

    def _create_acls(self) -> None:
        acls = dict.fromkeys((variant.user, acl) for variant in self._variants for acl in variant.acls)
        wanted = [_creation(*each) for each in acls]
        for start in range(0, len(wanted), _ACLS_PER_REQUEST):
            part = wanted[start : start + _ACLS_PER_REQUEST]
            created = self._call(CreateAclsRequest(creations=part), 3)
            assert [each.error_code for each in created.results] == [0] * len(part), created
        eventually(lambda: self._acl_count() >= len(wanted), what="the ACLs are in force")

    def _acl_count(self) -> int:
        every = DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        return sum(len(each.acls) for each in self._call(every, 3).resources)

    def _create_groups(self) -> None:
        for key_type in (GROUP, TRANSACTION):
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
            eventually(
                lambda find=find: self._call(find, 4).coordinators[0].error_code == 0,
                what="there is a coordinator",
            )
        for name in ("readers", *self._names("groups")):
            topics = ("orders", "secrets") if name == "readers" else ("orders",)
            eventually(
                lambda name=name, topics=topics: self._committed(name, *topics), what=f"{name} commits"
            )
        known = InitProducerIdRequest(transactional_id="known", transaction_timeout_ms=60_000)
        eventually(lambda: self._call(known, 4).error_code == 0, what="the transactional id is known")
        token = self._call(create_token(), 3)
        assert token.error_code == 0, token
        eventually(self._consumers_assigned, what="the consumer group has an assignment")
        eventually(self._streamers_joined, what="the streams group has a member")
        try:
            eventually(self._sharers_assigned, timeout=10, what="the share group has an assignment")
        except AssertionError:
            # Apache Kafka 4.3's share state persister does not log in to a SASL listener.
            self.has_share_assignment = False

    def _committed(self, group_id: str, *topics: str) -> bool:
        response = self._call(offset_commit(group_id, *topics), 9)
        return all(each.partitions[0].error_code == 0 for each in response.topics)

    def _consumers_assigned(self) -> bool:
        request = ConsumerGroupHeartbeatRequest(
            group_id="consumers",
            member_id="AAAAAAAAAAAAAAAAAAAAAg",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        response = self._call(request, 1)
        assigned = response.assignment
        return response.error_code == 0 and assigned is not None and bool(assigned.topic_partitions)

    def _sharers_assigned(self) -> bool:
        response = self._call(heartbeat("sharers", "orders"), 1)
        assigned = response.assignment
        return response.error_code == 0 and assigned is not None and bool(assigned.topic_partitions)

    def _streamers_joined(self) -> bool:
        code: int = self._call(streams_groups.heartbeat("streamers", "orders"), 0).error_code
        return code == 0

    def _names(self, field: str) -> list[str]:
        return [
            name.replace("{user}", variant.user)
            for variant in self._variants
            for name in getattr(variant.case, field)
        ]

    def _call(self, request: Message, version: int) -> Any:
        return self._admin.call(request, version)


def _creation(user: str, acl: Acl) -> AclCreation:
    return AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern_type,
        principal=f"User:{user}",
        host="*",
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
