"""kafka-delegation-tokens: requests, output and invalid arguments."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.kafka import delegation_tokens
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from moldau.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from tests.harness.wire.fake_broker import FakeBroker

HMAC = b"\x01\x02\x03"
TEXT = base64.b64encode(HMAC).decode()
MINUTE_MS = 60_000
HEADER = (
    "TOKENID         HMAC                           OWNER           REQUESTER       RENEWERS"
    "                  ISSUEDATE       EXPIRYDATE      MAXDATE        "
)


def described(request: Any) -> DescribeDelegationTokenResponse:
    token = DescribedDelegationToken(
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="carol",
        issue_timestamp=0,
        expiry_timestamp=MINUTE_MS,
        max_timestamp=2 * MINUTE_MS,
        token_id="id-1",
        hmac=HMAC,
        renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")],
    )
    return DescribeDelegationTokenResponse(tokens=[token])


def created(request: Any) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="alice",
        expiry_timestamp_ms=MINUTE_MS,
        max_timestamp_ms=2 * MINUTE_MS,
        token_id="id-1",
        hmac=HMAC,
    )


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dates are printed in local time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    answers: dict[int, Any] = {
        ApiKey.CREATE_DELEGATION_TOKEN: created,
        ApiKey.RENEW_DELEGATION_TOKEN: lambda _: RenewDelegationTokenResponse(expiry_timestamp_ms=MINUTE_MS),
        ApiKey.EXPIRE_DELEGATION_TOKEN: lambda _: ExpireDelegationTokenResponse(error_code=62),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: described,
    }
    with FakeBroker(answers) as fake:
        yield fake


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text("")
    return str(path)


def run(broker: FakeBroker, file: str, *argv: str) -> int:
    return delegation_tokens.main(["--bootstrap-server", broker.bootstrap, "--command-config", file, *argv])


def test_a_created_token_is_printed(
    broker: FakeBroker, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    assert run(broker, file, *argv, "--owner-principal", "User:alice") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Calling create token operation with renewers :[User:bob] , max-life-time-period :-1",
        "Created delegation token with tokenId : id-1",
        "",
        HEADER,
        "",
        "id-1            AQID                           User:alice      User:alice      [User:bob]"
        "                1970-01-01T00:00 1970-01-01T00:01 1970-01-01T00:02",
    ]
    sent: Any = broker.requests[-1]
    assert (sent.owner_principal_type, sent.owner_principal_name, sent.max_lifetime_ms) == (
        "User",
        "alice",
        -1,
    )
    assert [(each.principal_type, each.principal_name) for each in sent.renewers] == [("User", "bob")]


def test_a_token_is_renewed_by_its_hmac(
    broker: FakeBroker, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(broker, file, "--renew", "--hmac", TEXT, "--renew-time-period", "5") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Calling renew token operation with hmac :AQID , renew-time-period :5",
        "Completed renew operation. New expiry date : 1970-01-01T00:01",
    ]
    sent: Any = broker.requests[-1]
    assert (sent.hmac, sent.renew_period_ms) == (HMAC, 5)


def test_an_unknown_token_is_reported(
    broker: FakeBroker, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(broker, file, "--expire", "--hmac", TEXT, "--expiry-time-period", "-1") == 1
    output = capsys.readouterr()
    assert output.out == "Calling expire token operation with hmac :AQID , expire-time-period :-1\n"
    assert "Delegation Token is not found on server." in output.err


def test_tokens_of_owners_or_all_are_described(
    broker: FakeBroker, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(broker, file, "--describe", "--owner-principal", "User:a", "--owner-principal", "User:b") == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "Calling describe token operation for owners: [User:a, User:b]",
        "Total number of tokens : 1",
    ]
    assert run(broker, file, "--describe") == 0
    assert capsys.readouterr().out.startswith("Calling describe token operation for current user.\n")
    sent: Any = broker.requests[-1]
    assert sent.owners is None


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "Command must include exactly one action: --create, --renew, --expire or --describe"),
        (["--create", "--renew"], "Command must include exactly one action"),
        (["--create"], 'Missing required argument "[max-life-time-period]"'),
        (["--renew", "--renew-time-period", "1"], 'Missing required argument "[hmac]"'),
        (["--expire", "--hmac", TEXT], 'Missing required argument "[expiry-time-period]"'),
        (["--describe", "--hmac", TEXT], 'Option "[describe]" can\'t be used with option "[hmac]"'),
        (
            ["--create", "--max-life-time-period", "x"],
            "Cannot parse argument 'x' of option max-life-time-period",
        ),
        (["--describe", "--owner-principal", "alice"], "principalType:principalName but got alice"),
        (["--renew", "--hmac", "?", "--renew-time-period", "1"], "not valid base64"),
    ],
)
def test_invalid_arguments_are_rejected(
    broker: FakeBroker, file: str, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert run(broker, file, *argv) == 1
    assert message in capsys.readouterr().err


def test_security_settings_are_required(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert delegation_tokens.main(["--bootstrap-server", broker.bootstrap, "--describe"]) == 1
    assert 'Missing required argument "[command-config]"' in capsys.readouterr().err
