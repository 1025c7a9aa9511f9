"""Requests about delegation tokens are allowed only to clients that have proved who they are without one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.security.principal import ANONYMOUS, KafkaPrincipal
from moldau.server.authentication.tokens import allows_token_requests
from moldau.server.dispatch.context import ListenerContext, RequestContext
from moldau.server.settings import BROKER

CONNECTION: Any = SimpleNamespace()
ALICE = KafkaPrincipal("User", "alice")
WITH_TOKEN = ALICE._replace(token_authenticated=True)


@pytest.mark.parametrize(
    ("protocol", "principal", "forwarded", "allowed"),
    [
        ("SASL_PLAINTEXT", ALICE, False, True),
        ("SASL_SSL", ALICE, False, True),
        ("SSL", ALICE, False, True),
        ("SSL", ANONYMOUS, False, False),
        ("PLAINTEXT", ANONYMOUS, False, False),
        ("SASL_SSL", WITH_TOKEN, False, False),
        ("PLAINTEXT", ALICE, True, True),
        ("PLAINTEXT", WITH_TOKEN, True, False),
    ],
)
def test_which_requests_are_allowed(
    protocol: str, principal: KafkaPrincipal, forwarded: bool, allowed: bool
) -> None:
    listener = ListenerContext("L", BROKER, protocol, {}, {})
    context = RequestContext(38, 3, "c", listener, principal, "127.0.0.1", CONNECTION, forwarded=forwarded)
    assert allows_token_requests(context) is allowed
