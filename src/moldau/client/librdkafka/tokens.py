"""Tokens of SASL OAUTHBEARER for librdkafka, from the same sources as those of our own client.

librdkafka calls back in a thread of its own when it needs a token, at 80 % of the lifetime of the last one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from moldau.base.clock import SystemClock
from moldau.client.wire.security import SecuritySettings
from moldau.security.sasl.oauthbearer.settings import source_of
from moldau.security.sasl.oauthbearer.token import TokenSource
from moldau.security.system_properties import system_properties

#: The token, its expiry in seconds since the epoch, the principal and the SASL extensions.
Answer = tuple[str, float, str, dict[str, str]]


def token_source(security: SecuritySettings) -> TokenSource:
    """Return the source that the properties select; `KafkaError` if they are invalid."""
    modules = security.login_modules()
    options = modules[0].options if modules else {}
    return source_of(security.get, options, system_properties(), SystemClock(), random.SystemRandom())


def token_callback(security: SecuritySettings) -> Callable[[str], Answer]:
    """Return librdkafka's `oauth_cb`. An exception of it is reported as a failed authentication."""
    source = token_source(security)

    def answer(config: str) -> Answer:
        token = source.token()
        return token.value, token.expires_at_ms / 1000, token.principal, dict(source.extensions)

    return answer
