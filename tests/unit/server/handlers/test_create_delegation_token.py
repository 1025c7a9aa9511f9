"""Which tokens are refused before the controller decides."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from moldau.server.handlers import create_delegation_token
from tests.unit.server.granted import context_of


class Controller:
    def decide(self, *arguments: Any) -> str:
        return "decided"


def create(owner_type: str | None, owner: str | None) -> Any:
    request = CreateDelegationTokenRequest(owner_principal_type=owner_type, owner_principal_name=owner)
    plain = context_of(None, version=3)
    context = plain._replace(listener=plain.listener._replace(security_protocol="SASL_SSL"))
    return create_delegation_token.handle(cast(Any, Controller()), context, request)


@pytest.mark.parametrize("owner_type", [None, "", "User:bob"])
def test_an_owner_that_cannot_be_stored_is_refused(owner_type: str | None) -> None:
    assert create(owner_type, "carol").error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_the_owner_may_have_any_other_type() -> None:
    assert create("Service", "carol") == create(None, None) == "decided"
