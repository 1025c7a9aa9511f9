"""The table of permissions in docs/SECURITY.md is current, and every handler declares what it checks."""

from __future__ import annotations

import pytest

from moldau.protocol.api_keys import ApiKey
from tools.permissions import PAGE, HandlerRow, rows, with_section

#: APIs that every client may use, client telemetry among them, as in Kafka. Tokens may be changed by their
#: owner and renewers only.
FREE = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


def test_the_table_is_current() -> None:
    page = PAGE.read_text()
    assert page == with_section(page), "run: python -m tools.permissions"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.module.__name__.rpartition(".")[2])
def test_a_handler_names_the_permissions_that_it_checks(row: HandlerRow) -> None:
    assert row.rule, f"{row.module.__name__}: the docstring says nothing about permissions"
    assert row.named_permissions == row.checked_permissions


def test_only_known_apis_require_no_permission() -> None:
    assert {row.key for row in rows() if not row.checked_permissions} == FREE


def test_the_apis_of_client_telemetry_are_listed() -> None:
    """They are served only with `metrics.port`, so the tables of the listeners do not contain them."""
    listed = {row.key for row in rows()}
    assert {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY} <= listed
    assert "| PushTelemetry | broker |" in PAGE.read_text()
