"""Which requests are measured, the throttle time of their responses, and the mute of their connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.metadata.image import quota_entity
from moldau.network.responses import Response
from moldau.protocol.apis import APIS
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from moldau.protocol.messages.fetch import FetchRequest, ReplicaState
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse
from moldau.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from moldau.protocol.messages.produce import ProduceRequest, ProduceResponse
from moldau.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from moldau.protocol.schema import Message, decode
from moldau.quotas.client_quotas import ClientQuotas
from moldau.server.authentication.authentication import NoAuthentication
from moldau.server.dispatch.context import ListenerContext, Pending, ServedApi
from moldau.server.dispatch.dispatcher import ApiDispatcher
from moldau.server.dispatch.throttle import Throttle, is_exempt
from moldau.server.settings import BROKER
from tests.harness.wire.wire import request_frame

METADATA, PRODUCE = 12, 9


class Client:
    """A connection to a dispatcher whose handler is given; it records for how long it was muted."""

    def __init__(self, handle: Callable[[], Any], **limits: float) -> None:
        self.clock = ManualClock()
        self.muted_ms: list[int] = []
        self.write_seconds = 0.0
        self._handle = handle
        quotas = ClientQuotas()
        quotas.apply({quota_entity([("user", None)]): limits} if limits else {})
        self._throttle = Throttle(quotas, self.clock)
        self._connection: Any = SimpleNamespace(
            principal=None,
            session_ends_at=None,
            peer_host="10.0.0.1",
            keep_frame=lambda: None,
            mute=self.muted_ms.append,
            take_write_seconds=lambda now: self.write_seconds,
        )

    def send(self, request: Message, version: int) -> Response:
        key = request.API_KEY
        handlers: Any = {key: lambda *_: self._handle()}
        apis = {key: ServedApi(APIS[key], BROKER)}
        listener = ListenerContext("PLAINTEXT", BROKER, "PLAINTEXT", apis, handlers)
        dispatcher = ApiDispatcher(listener, NoAuthentication(), lambda connection: None, self._throttle)
        return dispatcher.dispatch(self._connection, memoryview(request_frame(request, version)))


def throttle_time(response: Response, message: type[Message], version: int) -> int:
    decoded: Any = decode(message, b"".join(response.parts), version, 4 + 4 + 1)
    return int(decoded.throttle_time_ms)


def test_request_without_quotas_is_not_measured() -> None:
    client = Client(MetadataResponse)
    assert throttle_time(client.send(MetadataRequest(topics=[]), METADATA), MetadataResponse, METADATA) == 0
    assert client.muted_ms == []


def test_time_of_a_handler_counts() -> None:
    def slow() -> Message:
        client.clock.advance(500)
        return MetadataResponse()

    client = Client(slow, request_percentage=1.0)
    response = client.send(MetadataRequest(topics=[]), METADATA)
    assert throttle_time(response, MetadataResponse, METADATA) == 1000
    assert client.muted_ms == [1000]


def test_time_of_waiting_does_not_count_and_that_of_steps_does() -> None:
    async def handler(step_ms: int) -> Message:
        for _ in range(2):
            client.clock.advance(step_ms)
            asyncio.get_running_loop().call_soon(client.clock.advance, 60_000)
            await asyncio.sleep(0)
        return MetadataResponse()

    async def answered() -> int:
        pending = client.send(MetadataRequest(topics=[]), METADATA).pending
        assert pending is not None
        return throttle_time(Response(await pending), MetadataResponse, METADATA)

    client = Client(lambda: handler(0), request_percentage=1.0)
    assert asyncio.run(answered()) == 0
    client = Client(lambda: handler(250), request_percentage=1.0)
    assert asyncio.run(answered()) == 1000


def test_cancelled_handler_is_cancelled_where_it_waits() -> None:
    cancelled: list[bool] = []

    async def handler() -> Message:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return MetadataResponse()

    async def scenario() -> None:
        pending = client.send(MetadataRequest(topics=[]), METADATA).pending
        assert pending is not None
        task = asyncio.ensure_future(pending)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    client = Client(handler, request_percentage=1.0)
    asyncio.run(scenario())
    assert cancelled == [True]


def test_time_of_writing_the_previous_response_counts() -> None:
    client = Client(MetadataResponse, request_percentage=1.0)
    client.write_seconds = 0.5
    client.send(MetadataRequest(topics=[]), METADATA)
    assert client.muted_ms == [1000]


def test_overlapping_produce_is_charged_before_its_response() -> None:
    async def later() -> Message:
        return ProduceResponse()

    async def scenario() -> None:
        client = Client(lambda: Pending(later(), overlapping=True), producer_byte_rate=1.0)
        response = client.send(ProduceRequest(), PRODUCE)
        assert len(client.muted_ms) == 1, "the next request must wait"
        assert response.pending is not None
        throttle_ms = throttle_time(Response(await response.pending), ProduceResponse, PRODUCE)
        assert throttle_ms == client.muted_ms[0] > 0

    asyncio.run(scenario())


def test_produce_without_a_response_mutes_and_its_time_does_not_count() -> None:
    client = Client(lambda: None, producer_byte_rate=1.0, request_percentage=0.001)
    assert client.send(ProduceRequest(acks=0), PRODUCE).parts == ()
    assert len(client.muted_ms) == 1


def test_longest_throttle_time_applies() -> None:
    client = Client(lambda: MetadataResponse(throttle_time_ms=5000), request_percentage=1.0)
    client.write_seconds = 0.5
    response = client.send(MetadataRequest(topics=[]), METADATA)
    assert throttle_time(response, MetadataResponse, METADATA) == 5000
    assert client.muted_ms == [5000]


def test_version_without_a_throttle_time_mutes_too() -> None:
    client = Client(MetadataResponse, request_percentage=1.0)
    client.write_seconds = 0.5
    assert client.send(MetadataRequest(topics=[]), 1).parts
    assert client.muted_ms == [1000]


@pytest.mark.parametrize(
    ("request_", "version", "exempt"),
    [
        (FetchRequest(replica_state=ReplicaState(replica_id=2)), 17, True),
        (FetchRequest(replica_id=2), 12, True),
        (FetchRequest(), 17, False),
        (OffsetForLeaderEpochRequest(replica_id=2), 4, True),
        (OffsetForLeaderEpochRequest(replica_id=-1), 4, False),
        (AddPartitionsToTxnRequest(), 5, True),
        (AddPartitionsToTxnRequest(), 3, False),
        (WriteTxnMarkersRequest(), 1, True),
        (MetadataRequest(), 12, False),
    ],
)
def test_requests_of_other_brokers_are_exempt(request_: Message, version: int, exempt: bool) -> None:
    def context(*, allowed: bool) -> Any:
        return SimpleNamespace(
            api_key=request_.API_KEY, api_version=version, allows=lambda permission, **_: allowed
        )

    assert is_exempt(context(allowed=True), request_) is exempt
    assert not is_exempt(context(allowed=False), request_), "a client may claim to be a broker"
