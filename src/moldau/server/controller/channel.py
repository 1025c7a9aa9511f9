"""Requests to the active controller, whether it runs in this process or on another node.

A handler names the decision (`channel.decide(context, request, topics.create_topics)`). If this node is the
active controller, the decision runs here; otherwise the request is sent to the active controller, whose
handler names the same decision. `ControllerCalls` finds the active controller and retries.

- A client's request is forwarded in an Envelope with the client's identity (KIP-590). The response is held
  back until this node has applied the change (`read_your_writes`).
- A request of this node itself is sent without an Envelope, on a connection per purpose.
- A request that arrives on a controller listener is decided here or answered with NOT_CONTROLLER.
- A client's request is authorised by the node that decides it (`authorization.py`).

An error about the whole request is a `KafkaError`, wherever it was decided.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.controller import Decide
from moldau.protocol.messages.controller_registration import ControllerRegistrationResponse
from moldau.protocol.messages.envelope import EnvelopeResponse
from moldau.protocol.schema import Message
from moldau.server.controller.authorization import Authorize
from moldau.server.controller.calls import FORWARDING, HEARTBEAT, ControllerCalls
from moldau.server.controller.envelopes import request_version, unwrap_response, wrap_request
from moldau.server.controller.local import LocalController
from moldau.server.controller.mutations import ControllerMutations
from moldau.server.controller.read_your_writes import visible
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import CONTROLLER

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")

#: Maximum time a request waits for an active controller, as in Kafka.
_TIMEOUT_MS = 60_000
#: The longest delay of a response until this node has applied the change.
_VISIBLE_SECONDS = 1.0


class ControllerChannel:
    def __init__(
        self,
        local: LocalController,
        calls: ControllerCalls,
        publisher: MetadataPublisher,
        mutations: ControllerMutations,
        *,
        heartbeat_timeout_ms: int,
    ) -> None:
        self._local = local
        self._calls = calls
        self._publisher = publisher
        self._mutations = mutations
        self._heartbeat_timeout_ms = heartbeat_timeout_ms

    async def decide(
        self,
        context: RequestContext | None,
        request: Q,
        decide: Decide[Q, R],
        authorize: Authorize[Q, R] | None = None,
    ) -> R:
        """Have the active controller decide a client's request, or one of this node if `context` is None.

        Returns once the change is committed and applied on this node.
        """
        response = await self.read(context, request, decide, authorize)
        await self._publisher.caught_up()
        is_visible = visible(request, cast(Message, response))
        if is_visible is not None:
            await self._publisher.until(is_visible, _VISIBLE_SECONDS)
        return response

    async def read(
        self,
        context: RequestContext | None,
        request: Q,
        decide: Decide[Q, R],
        authorize: Authorize[Q, R] | None = None,
    ) -> R:
        """The same for a request that changes nothing."""
        version = request_version(context, request)

        async def answer_here() -> R:
            if context is None or authorize is None:
                return await self._decide_here(context, version, request, decide)
            authorized = authorize(context, request)
            response = await self._decide_here(context, version, authorized.request, decide)
            return authorized.complete(response)

        return await self.forward(context, request, answer_here)

    async def _decide_here(
        self, context: RequestContext | None, version: int, request: Q, decide: Decide[Q, R]
    ) -> R:
        mutations = self._mutations.begin(context, request, version)
        if mutations is None:
            return await self._local.decide(version, request, decide)
        response: Any = await self._local.decide(version, request, decide, mutations.charge)
        response.throttle_time_ms = self._mutations.throttle_ms(mutations)
        return cast(R, response)

    async def forward(
        self, context: RequestContext | None, request: Message, answer_here: Callable[[], Awaitable[R]]
    ) -> R:
        """Have the active controller answer; `answer_here` does so if this node is the active controller.

        `answer_here` authorises the request of a client first.
        """
        if context is not None and context.listener.role == CONTROLLER:
            return await answer_here()
        if context is None:
            return await self._calls.call(FORWARDING, request, answer_here, _TIMEOUT_MS)
        envelope: Message = wrap_request(context, request)
        response: Any = await self._calls.call(FORWARDING, envelope, answer_here, _TIMEOUT_MS)
        if isinstance(response, EnvelopeResponse):
            response = unwrap_response(context, request, response)
        return cast(R, response)

    async def send(self, purpose: str, request: Q, decide: Decide[Q, R]) -> R:
        """Send a request of this node itself; an error code of the response is raised."""
        version = request_version(None, request)
        timeout_ms = self._heartbeat_timeout_ms if purpose == HEARTBEAT else _TIMEOUT_MS
        response: Any = await self._calls.call(
            purpose, request, lambda: self._local.decide(version, request, decide), timeout_ms
        )
        if response.error_code != ErrorCode.NONE:
            described = isinstance(response, ControllerRegistrationResponse)
            raise KafkaError(ErrorCode(response.error_code), response.error_message if described else None)
        return cast(R, response)

    def close(self) -> None:
        self._calls.close()
