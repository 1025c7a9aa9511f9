"""The requests that are charged to `controller_mutation_rate` (KIP-599), and their charges.

The active controller charges the client, also if a broker has forwarded its request. Requests of the nodes
themselves, for internal topics, are not charged.
"""

from __future__ import annotations

from moldau.base.clock import Clock
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message
from moldau.quotas.mutations import MutationQuota, MutationRequest
from moldau.server.dispatch.context import RequestContext

#: The first versions whose clients know THROTTLING_QUOTA_EXCEEDED; older ones are only throttled.
_STRICT_SINCE = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}


class ControllerMutations:
    def __init__(self, quota: MutationQuota, clock: Clock) -> None:
        self._quota = quota
        self._clock = clock

    def begin(self, context: RequestContext | None, request: Message, version: int) -> MutationRequest | None:
        """Return the quota of a request; None if it is not limited."""
        if context is None or not self._quota.sensors.enabled:
            return None
        strict_since = _STRICT_SINCE.get(ApiKey(request.API_KEY))
        if strict_since is None:
            return None
        return self._quota.request(
            context.principal.name, context.client_id, strict=version >= strict_since, now_ms=self._now_ms()
        )

    def throttle_ms(self, mutations: MutationRequest) -> int:
        return mutations.throttle_ms(self._now_ms())

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
