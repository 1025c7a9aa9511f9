"""Bearer tokens of HTTP requests, checked as SASL OAUTHBEARER checks them.

A validated token is remembered until it expires, so that a client pays for the signature once. The cache is
bounded; its keys are digests, so that no token is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.base.clock import Clock
from moldau.base.json_log import event
from moldau.security.sasl.oauthbearer.settings import validator_of
from moldau.security.sasl.oauthbearer.token import InvalidToken, TokenValidator
from moldau.security.system_properties import system_properties

logger = logging.getLogger(__name__)

_MAX_TOKENS: Final = 4096
_PREFIX: Final = "sasl."


class _Accepted(NamedTuple):
    principal: str
    expires_at_ms: int


class BearerTokens:
    def __init__(self, validator: TokenValidator, clock: Clock) -> None:
        self._validator = validator
        self._clock = clock
        self._accepted: OrderedDict[bytes, _Accepted] = OrderedDict()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], clock: Clock) -> BearerTokens:
        """Read `oauthbearer.jwks.endpoint.url` and so on, also with Kafka's prefix `sasl.`."""

        def get(name: str) -> str | None:
            return properties.get(name.removeprefix(_PREFIX), properties.get(name))

        options = {name: value for name, value in properties.items() if name.startswith("ssl.truststore.")}
        return cls(validator_of(get, options, system_properties(), clock), clock)

    async def authenticate(self, token: str) -> str | None:
        """Return the name of the principal; None if the token is refused."""
        key = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._accepted.get(key)
        if known is not None and known.expires_at_ms > self._clock.time_ms():
            return known.principal
        try:
            if self._validator.blocking:
                found = await asyncio.to_thread(self._validator.validate, token)
            else:
                found = self._validator.validate(token)
        except InvalidToken as error:
            logger.info("Bearer token refused: %s", error, extra=event("login.failed"))
            return None
        self._accepted[key] = _Accepted(found.principal, found.expires_at_ms)
        while len(self._accepted) > _MAX_TOKENS:
            self._accepted.popitem(last=False)
        return found.principal
