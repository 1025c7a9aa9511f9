"""Envelopes: the identity of the client reaches the controller as the broker saw it."""

from __future__ import annotations

import pytest

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.create_acls import CreateAclsRequest
from moldau.security.principal import KafkaPrincipal
from moldau.server.controller.envelopes import unwrap_request, wrap_request
from moldau.server.settings import CONTROLLER
from tests.unit.server.granted import context


@pytest.mark.parametrize(
    ("host", "forwarded"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"),
        ("fe80:0:0:0:0:0:0:a", "fe80:0:0:0:0:0:0:a"),
    ],
)
def test_the_address_of_the_client_is_text_that_acls_name(host: str, forwarded: str) -> None:
    principal = KafkaPrincipal("User", "alice", token_authenticated=True)
    client = context(version=3)._replace(
        client_host=host, principal=principal, api_key=ApiKey.CREATE_ACLS, client_id="app"
    )
    envelope = wrap_request(client, CreateAclsRequest())
    seen, header, _ = unwrap_request(context(role=CONTROLLER), envelope)
    assert (seen.client_host, seen.principal) == (forwarded, principal)
    assert (seen.api_key, seen.api_version, seen.client_id) == (ApiKey.CREATE_ACLS, 3, "app")
    assert header.api_version == 3
