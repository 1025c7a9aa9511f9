"""The dispatcher: errors, unexpected exceptions and undecodable requests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connection import CloseConnection
from moldau.network.responses import Response
from moldau.protocol.apis import APIS
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from moldau.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.protocol.messages.describe_quorum import Node as QuorumNode
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.schema import Message, decode
from moldau.server.authentication.authentication import NoAuthentication
from moldau.server.dispatch.context import ListenerContext, ServedApi
from moldau.server.dispatch.dispatcher import ApiDispatcher
from moldau.server.settings import BROKER
from tests.harness.wire.wire import request_frame

CONNECTION: Any = SimpleNamespace(
    principal=None, session_ends_at=None, peer_host="10.0.0.1", keep_frame=lambda: None
)


def dispatch(request: Message, version: int, handle: Any) -> Response:
    key = request.API_KEY
    apis = {key: ServedApi(APIS[key], BROKER)}
    listener = ListenerContext("PLAINTEXT", BROKER, "PLAINTEXT", apis, {key: handle})
    dispatcher = ApiDispatcher(listener, NoAuthentication(), on_disconnect=lambda connection: None)
    return dispatcher.dispatch(CONNECTION, memoryview(request_frame(request, version)))


def answered(answer: Response) -> DescribeClusterResponse:
    frame = b"".join(answer.parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return decode(DescribeClusterResponse, frame, 1, 4 + 4 + 1)


def failing(error: Exception) -> Any:
    def handle(*_: object) -> Message:
        raise error

    return handle


def failing_later(error: Exception) -> Any:
    async def handle(*_: object) -> Message:
        await asyncio.sleep(0)
        raise error

    return handle


def test_a_kafka_error_becomes_the_response() -> None:
    error = KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "not here")
    answer = answered(dispatch(DescribeClusterRequest(), 1, failing(error)))
    assert (answer.error_code, answer.error_message) == (error.code, "not here")


def test_an_unexpected_exception_becomes_unknown_server_error(caplog: pytest.LogCaptureFixture) -> None:
    answer = answered(dispatch(DescribeClusterRequest(), 1, failing(RuntimeError("secret"))))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "secret" not in str(answer.error_message)
    assert "secret" in caplog.text


def test_errors_of_awaited_responses_become_the_response() -> None:
    async def scenario() -> None:
        for error, code in (
            (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
            (RuntimeError("bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            answer = dispatch(DescribeClusterRequest(), 1, failing_later(error))
            assert answer.pending is not None
            assert answered(Response(await answer.pending)).error_code == code

    asyncio.run(scenario())


def test_an_error_without_a_field_in_the_version_closes_the_connection() -> None:
    """No error in an answer means success, and there was none."""
    error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert dispatch(MetadataRequest(topics=[]), 13, failing(error)).parts
    with pytest.raises(CloseConnection, match="KAFKA_STORAGE_ERROR"):
        dispatch(MetadataRequest(topics=[]), 12, failing(error))


def test_a_response_that_cannot_be_encoded_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handle(*_: object) -> Message:
        return DescribeQuorumResponse(nodes=[QuorumNode(node_id=1)])

    assert dispatch(DescribeQuorumRequest(), 2, handle).parts
    with pytest.raises(CloseConnection):
        dispatch(DescribeQuorumRequest(), 1, handle)
    assert "DescribeQuorumResponse" in caplog.text


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        b"\x03\xe7\0\0\0\0\0\x01\xff\xff",  # API 999
        b"\0\x3c\0\x63\0\0\0\x01\xff\xff\0",  # DescribeCluster 99
        b"\0\x3c\0\x01\0\0\0\x01\xff\xff",  # without its tagged fields
        request_frame(DescribeClusterRequest(), 1)[:-1],
    ],
    ids=["empty", "one byte", "unknown API", "unknown version", "half a header", "half a body"],
)
def test_an_undecodable_request_closes_the_connection(frame: bytes) -> None:
    handlers = {60: failing(AssertionError("must not be called"))}
    listener = ListenerContext("PLAINTEXT", BROKER, "PLAINTEXT", {60: ServedApi(APIS[60], BROKER)}, handlers)
    dispatcher = ApiDispatcher(listener, NoAuthentication(), on_disconnect=lambda connection: None)
    with pytest.raises(CloseConnection):
        dispatcher.dispatch(CONNECTION, memoryview(frame))
