"""The connection towards other nodes, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import NodeConnection
from moldau.network.failures import ConnectionLost, NodeUnreachable, NotKafka, explain_protocol
from moldau.protocol.headers import decode_request_header, encode_response_header
from moldau.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.schema import Message, encode_bytes

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=18, min_version=0, max_version=4),
        ApiVersion(api_key=60, min_version=0, max_version=1),
        ApiVersion(api_key=3, min_version=100, max_version=101),
    ]
)


async def read_request(reader: asyncio.StreamReader) -> tuple[int, int, int]:
    """API key, version and correlation id of the next request."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    frame = memoryview(await reader.readexactly(size))
    header, _ = decode_request_header(frame)
    return header.api_key, header.api_version, header.correlation_id


def answer(api_key: int, version: int, correlation_id: int, response: Message) -> bytes:
    body = encode_response_header(api_key, version, correlation_id) + encode_bytes(response, version)
    return len(body).to_bytes(4, "big") + body


async def negotiate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    api_key, version, correlation_id = await read_request(reader)
    writer.write(answer(api_key, version, correlation_id, VERSIONS))


def run_with(handler: Handler, client: Callable[[int], Awaitable[None]]) -> None:
    async def main() -> None:
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            await client(port)
        finally:
            server.close()

    asyncio.run(main())


def fails_to_connect(sent: Sequence[bytes], expected: type[KafkaError], text: str) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        for part in sent:
            writer.write(part)
        await writer.drain()
        writer.close()

    async def client(port: int) -> None:
        with pytest.raises(expected, match=text):
            await NodeConnection.connect("127.0.0.1", port, timeout_ms=2000)

    run_with(handler, client)


def test_responses_are_matched_by_correlation_id() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await negotiate(reader, writer)
        first, second = await read_request(reader), await read_request(reader)
        for number, request in ((2, second), (1, first)):
            writer.write(answer(*request, DescribeClusterResponse(cluster_id=f"c{number}")))

    async def client(port: int) -> None:
        connection = await NodeConnection.connect("127.0.0.1", port)
        calls = (connection.call(DescribeClusterRequest()), connection.call(DescribeClusterRequest()))
        answers = await asyncio.gather(*calls)
        assert [found.cluster_id for found in answers] == ["c1", "c2"]
        connection.close()

    run_with(handler, client)


def test_newest_common_version_is_used() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await negotiate(reader, writer)
        api_key, version, correlation_id = await read_request(reader)
        assert (api_key, version) == (60, 1)
        writer.write(answer(api_key, version, correlation_id, DescribeClusterResponse()))

    async def client(port: int) -> None:
        connection = await NodeConnection.connect("127.0.0.1", port)
        await connection.call(DescribeClusterRequest())
        assert connection.supports(60)
        assert not connection.supports(3)
        with pytest.raises(KafkaError, match="supports 100 to 101") as error:
            await connection.call(MetadataRequest())
        assert error.value.code is ErrorCode.UNSUPPORTED_VERSION
        connection.close()

    run_with(handler, client)


def test_api_versions_is_retried_in_the_version_of_an_old_node() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        api_key, _, correlation_id = await read_request(reader)
        only = [ApiVersion(api_key=18, min_version=0, max_version=2)]
        refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=only)
        writer.write(answer(api_key, 0, correlation_id, refused))
        api_key, version, correlation_id = await read_request(reader)
        assert version == 2
        writer.write(answer(api_key, version, correlation_id, VERSIONS))

    async def client(port: int) -> None:
        connection = await NodeConnection.connect("127.0.0.1", port)
        assert connection.api_versions[60].highest == 1
        connection.close()

    run_with(handler, client)


def test_request_timeout_closes_the_connection() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await negotiate(reader, writer)
        await reader.read()

    async def client(port: int) -> None:
        connection = await NodeConnection.connect("127.0.0.1", port)
        with pytest.raises(KafkaError, match="did not answer DescribeCluster within 50 ms") as error:
            await connection.call(DescribeClusterRequest(), timeout_ms=50)
        assert error.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert connection.closed

    run_with(handler, client)


def test_lost_connection_fails_all_requests_in_flight() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await negotiate(reader, writer)
        await read_request(reader)
        await read_request(reader)
        writer.close()

    async def client(port: int) -> None:
        connection = await NodeConnection.connect("127.0.0.1", port)
        calls = [connection.call(DescribeClusterRequest()) for _ in range(2)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, ConnectionLost) for result in results)
        with pytest.raises(ConnectionLost):
            await connection.call(DescribeClusterRequest())

    run_with(handler, client)


def test_malformed_response_fails_its_request() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await negotiate(reader, writer)
        _, _, correlation_id = await read_request(reader)
        writer.write(b"\x00\x00\x00\x07" + correlation_id.to_bytes(4, "big") + b"\x00\xff\xff")

    async def client(port: int) -> None:
        connection = await NodeConnection.connect("127.0.0.1", port)
        with pytest.raises(NotKafka):
            await connection.call(DescribeClusterRequest())

    run_with(handler, client)


def test_servers_of_other_protocols_are_recognised() -> None:
    fails_to_connect([b"HTTP/1.1 400 Bad Request\r\n\r\n"], NotKafka, "is an HTTP server")
    fails_to_connect([b"\x15\x03\x03\x00\x02\x02\x50"], NotKafka, "speaks TLS")
    fails_to_connect([b"SSH-2.0-OpenSSH_9.2\r\n"], NotKafka, "is an SSH server")
    fails_to_connect([b"220 mail.example ESMTP\r\n"], NotKafka, "220 mail.example")
    fails_to_connect([b"\xff\xff\xff\xff\xff"], NotKafka, "frame of -1 bytes")
    fails_to_connect(
        [b"\x00\x00\x00\x08\x00\x00\x00\x63\x00\x00\x00\x00"], NotKafka, "a response without request"
    )
    fails_to_connect([], ConnectionLost, "closed the connection")


def test_unknown_protocol_has_no_explanation() -> None:
    assert explain_protocol(b"\x00\x01\x02") is None
    assert explain_protocol(b"") is None


def test_closed_port_and_unknown_host_are_reported() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(NodeUnreachable, match="connection refused") as refused:
            await NodeConnection.connect("127.0.0.1", port)
        assert refused.value.passing
        with pytest.raises(NodeUnreachable, match="cannot be resolved"):
            await NodeConnection.connect("no-such-host.invalid", 9092)

    asyncio.run(main())


def test_silent_port_times_out() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def client(port: int) -> None:
        with pytest.raises(NodeUnreachable, match="no response within 100 ms"):
            await NodeConnection.connect("127.0.0.1", port, timeout_ms=100)

    run_with(handler, client)
