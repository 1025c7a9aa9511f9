"""Requests to the controller are authorised by the node that decides them, before it decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.security.principal import decode_principal
from moldau.server.controller.authorization import Authorized, requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.settings import CONTROLLER
from tests.unit.server.granted import ALICE, context

REQUEST = UnregisterBrokerRequest(broker_id=7)


class Local:
    """The controller of this process; remembers what it decided."""

    def __init__(self) -> None:
        self.decided: list[Any] = []

    async def decide(self, version: int, request: Any, decide: Any, *more: Any) -> UnregisterBrokerResponse:
        self.decided.append(request)
        return UnregisterBrokerResponse()


class Calls:
    """The way to the active controller: in this process, or elsewhere."""

    def __init__(self, *, here: bool) -> None:
        self._here = here
        self.sent: list[Any] = []

    async def call(
        self, purpose: str, request: Any, answer_here: Callable[[], Awaitable[Any]], timeout_ms: int
    ) -> Any:
        if self._here:
            return await answer_here()
        self.sent.append(request)
        return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class Publisher:
    async def caught_up(self) -> None:
        """There is nothing to wait for."""


class NoQuota:
    def begin(self, *_: Any) -> None:
        """No quota applies."""


def channel(local: Local, calls: Calls) -> ControllerChannel:
    parts: Any = (local, calls, Publisher(), NoQuota())
    return ControllerChannel(*parts, heartbeat_timeout_ms=1000)


def decide(request_context: RequestContext, local: Local, calls: Calls, authorize: Any = None) -> Any:
    wanted = authorize or requires(ALTER_CLUSTER)
    decision = cast(Any, None)
    return asyncio.run(channel(local, calls).decide(request_context, REQUEST, decision, wanted))


def test_a_request_without_the_permission_is_not_decided() -> None:
    local = Local()
    with pytest.raises(KafkaError) as refused:
        decide(context(), local, Calls(here=True))
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert local.decided == []


def test_a_request_with_the_permission_is_decided() -> None:
    local = Local()
    decide(context(ALTER_CLUSTER), local, Calls(here=True))
    assert local.decided == [REQUEST]


def test_a_controller_authorises_even_if_it_is_not_active() -> None:
    with pytest.raises(KafkaError) as refused:
        decide(context(role=CONTROLLER), Local(), Calls(here=False))
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_broker_forwards_without_a_check_in_the_name_of_the_client() -> None:
    calls = Calls(here=False)
    with pytest.raises(KafkaError) as refused:
        decide(context(), Local(), calls)
    (envelope,) = calls.sent
    assert isinstance(envelope, EnvelopeRequest)
    assert decode_principal(envelope.request_principal) == ALICE
    # An error of the envelope is not the client's.
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_only_the_authorised_part_is_decided_and_the_response_is_completed() -> None:
    part, local = UnregisterBrokerRequest(broker_id=8), Local()

    def complete(response: UnregisterBrokerResponse) -> UnregisterBrokerResponse:
        response.error_message = "completed"
        return response

    response = decide(
        context(), local, Calls(here=True), lambda _context, _request: Authorized(part, complete)
    )
    assert local.decided == [part]
    assert response.error_message == "completed"
