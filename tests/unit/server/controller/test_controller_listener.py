"""The controller listener over a real socket: registrations, heartbeats, envelopes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.network.client import NodeConnection
from moldau.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.alter_partition import AlterPartitionRequest
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest
from moldau.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.schema import decode, encode_bytes
from moldau.security.principal import ANONYMOUS, KafkaPrincipal, decode_principal, encode_principal
from moldau.server.handlers import elect_leaders
from moldau.server.node import Node
from moldau.server.startup.identity import feature_ranges
from tests.harness.apache.node import free_port
from tests.harness.nodes.node import connected, running_node
from tests.unit.metadata.builders import uid
from tests.unit.server.coordinators.test_coordinator import until

LOCALHOST = bytes([127, 0, 0, 1])


@asynccontextmanager
async def controller_connection(node: Node) -> AsyncIterator[NodeConnection]:
    async with connected(node, "CONTROLLER") as connection:
        yield connection


async def register(node: Node, connection: NodeConnection, port: int, **changes: Any) -> Any:
    """Broker 2 as it would register itself; it listens, or does not, at `port`."""
    request = BrokerRegistrationRequest(
        broker_id=2,
        cluster_id=node.cluster_id,
        incarnation_id=uid(21),
        listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=port)],
        features=[Feature(**each) for each in feature_ranges(node.image)],
        log_dirs=[uid(102)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return await connection.call(request)


async def beat(connection: NodeConnection, epoch: int, **values: Any) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(
        broker_id=2, broker_epoch=epoch, current_metadata_offset=1 << 40, cordoned_log_dirs=[], **values
    )
    answer: BrokerHeartbeatResponse = await connection.call(request)
    return answer


def fenced(node: Node) -> bool:
    return node.image.cluster.brokers[2].fenced


@asynccontextmanager
async def listening(node: Node, accepted: list[object] | None = None) -> AsyncIterator[int]:
    """A port where broker 2 seems to be: who connects there talks to the node itself. Gone at the end."""
    known = [] if accepted is None else accepted

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known.append(writer)
        there, back = await asyncio.open_connection("127.0.0.1", node.ports["PLAINTEXT"])
        await asyncio.gather(pass_on(reader, back), pass_on(there, writer), return_exceptions=True)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class TestBrokers:
    def test_a_broker_registers_is_unfenced_and_may_stop(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with running_node(tmp_path) as node, controller_connection(node) as connection:
                answer = await register(node, connection, 1)
                assert (await beat(connection, answer.broker_epoch)).is_fenced is False
                await until(lambda: not fenced(node))
                ids = AllocateProducerIdsRequest(broker_id=2, broker_epoch=answer.broker_epoch)
                assert (await connection.call(ids)).producer_id_len == 1000
                stopping = await beat(connection, answer.broker_epoch, want_shut_down=True)
                assert stopping.should_shut_down
                await until(lambda: fenced(node))

        asyncio.run(main())

    def test_invalid_registrations_and_epochs_are_refused(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with running_node(tmp_path) as node, controller_connection(node) as connection:
                stranger = await register(node, connection, 1, cluster_id="another")
                assert stranger.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
                assert (await beat(connection, 5)).error_code == ErrorCode.STALE_BROKER_EPOCH
                answer = await register(node, connection, 1)
                await beat(connection, answer.broker_epoch)
                twin = await register(node, connection, 1, incarnation_id=uid(22))
                assert twin.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
                stale = await beat(connection, answer.broker_epoch - 1)
                assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
                altered = await connection.call(AlterPartitionRequest(broker_id=2, broker_epoch=1))
                assert altered.error_code == ErrorCode.STALE_BROKER_EPOCH

        asyncio.run(main())

    def test_a_broker_whose_process_ended_is_fenced_at_once(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with running_node(tmp_path) as node:
                async with controller_connection(node) as connection, listening(node) as port:
                    answer = await register(node, connection, port)
                    await beat(connection, answer.broker_epoch)
                    await until(lambda: 2 in node.services.failure_detector._reached)
                async with asyncio.timeout(2):
                    await until(lambda: fenced(node))

        asyncio.run(main())

    def test_metadata_during_a_failover_waits_for_the_new_leader(self, tmp_path: Path) -> None:
        """The dead broker is still listed then: librdkafka would lose its partitions with it."""

        async def main() -> None:
            async with running_node(tmp_path) as node, connected(node) as client:
                async with controller_connection(node) as connection, listening(node) as port:
                    answer = await register(node, connection, port)
                    await beat(connection, answer.broker_epoch)
                    await until(lambda: 2 in node.services.failure_detector._reached)
                    replicas = CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])
                    topic = CreatableTopic(name="t", assignments=[replicas])
                    await client.call(CreateTopicsRequest(topics=[topic]))
                await until(lambda: node.services.suspected_brokers or fenced(node))
                asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
                metadata = await client.call(asked)
                assert metadata.topics[0].partitions[0].leader_id == 1
                assert sorted(each.node_id for each in metadata.brokers) == [1, 2]

        asyncio.run(main())

    def test_a_broker_that_was_never_reached_is_not_fenced_early(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with running_node(tmp_path) as node:
                async with controller_connection(node) as connection:
                    answer = await register(node, connection, free_port())
                    await beat(connection, answer.broker_epoch)
                    await until(lambda: not fenced(node))
                await until(lambda: not node.services.failure_detector._heartbeat_connections)
                assert not node.services.failure_detector._checking
                assert not node.metadata.image.cluster.brokers[2].fenced

        asyncio.run(main())

    def test_a_closed_connection_to_a_live_broker_does_not_fence_it(self, tmp_path: Path) -> None:
        async def main() -> None:
            accepted: list[object] = []
            async with running_node(tmp_path) as node, listening(node, accepted) as port:
                async with controller_connection(node) as connection:
                    answer = await register(node, connection, port)
                    await beat(connection, answer.broker_epoch)
                    await until(lambda: 2 in node.services.failure_detector._reached)
                    before = len(accepted)
                await until(lambda: len(accepted) > before)
                await until(lambda: not node.services.failure_detector._checking)
                assert not node.metadata.image.cluster.brokers[2].fenced

        asyncio.run(main())


def envelope(request: Any, version: int, **changes: Any) -> EnvelopeRequest:
    header = RequestHeader(request.API_KEY, version, 77, "someone")
    result = EnvelopeRequest(
        request_data=encode_request_header(header) + encode_bytes(request, version),
        request_principal=encode_principal(KafkaPrincipal("User", "alice")),
        client_host_address=LOCALHOST,
    )
    for name, value in changes.items():
        setattr(result, name, value)
    return result


CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])


class TestEnvelopes:
    def test_a_forwarded_request_is_answered_in_its_own_version(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with running_node(tmp_path) as node, controller_connection(node) as connection:
                answer: EnvelopeResponse = await connection.call(envelope(CREATE, 6))
                assert answer.error_code == ErrorCode.NONE
                assert answer.response_data is not None
                correlation_id, body = decode_response_header(19, 6, answer.response_data)
                response = decode(CreateTopicsResponse, answer.response_data, 6, body)
                assert (correlation_id, response.topics[0].error_code) == (77, ErrorCode.NONE)
                assert "t" in node.image.topics.by_name

        asyncio.run(main())

    def test_a_failed_request_without_an_error_field_does_not_close_the_shared_connection(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(state: object, request: object, context: object) -> None:
            raise RuntimeError("a bug in the decision")

        async def main() -> None:
            monkeypatch.setattr(elect_leaders, "elect_leaders", broken)
            async with running_node(tmp_path) as node, controller_connection(node) as connection:
                answer: EnvelopeResponse = await connection.call(envelope(ElectLeadersRequest(), 0))
                assert (answer.error_code, answer.response_data) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
                assert (await connection.call(envelope(CREATE, 6))).error_code == ErrorCode.NONE

        asyncio.run(main())

    @pytest.mark.parametrize(
        ("request_", "error"),
        [
            (envelope(CREATE, 6, request_principal=b"\x00\x09"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
            (envelope(CREATE, 6, request_principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
            (envelope(CREATE, 6, client_host_address=b"\x01"), ErrorCode.INVALID_REQUEST),
            (envelope(CREATE, 6, request_data=b"\x00\x13"), ErrorCode.UNSUPPORTED_VERSION),
            (envelope(CREATE, 6, request_data=b"\x00\x13\x00\x63" + bytes(7)), ErrorCode.UNSUPPORTED_VERSION),
            (envelope(BrokerHeartbeatRequest(), 1), ErrorCode.INVALID_REQUEST),
        ],
        ids=["principal", "no principal", "address", "header", "version", "not forwardable"],
    )
    def test_invalid_envelopes_are_refused(
        self, tmp_path: Path, request_: EnvelopeRequest, error: ErrorCode
    ) -> None:
        async def main() -> None:
            async with running_node(tmp_path) as node, controller_connection(node) as connection:
                answer: EnvelopeResponse = await connection.call(request_)
                assert (answer.error_code, answer.response_data) == (error, None)

        asyncio.run(main())


def test_a_principal_is_encoded_as_in_kafka() -> None:
    encoded = encode_principal(ANONYMOUS)
    assert encoded == b"\x00\x00\x05User\x0aANONYMOUS\x00\x00"
    assert decode_principal(encoded) == ANONYMOUS
