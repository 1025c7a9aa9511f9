"""Unsecured tokens for development, as Kafka's OAuthBearerLoginModule makes and accepts them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.config.definition import ConfigError
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.token import InvalidToken, read_object, sections
from moldau.security.sasl.oauthbearer.unsecured import UnsecuredSource, UnsecuredValidator
from tests.unit.security.sasl.oauthbearer.test_token import section

SUBJECT = {"unsecuredLoginStringClaim_sub": "alice"}


def made(clock: ManualClock, **options: str) -> str:
    return UnsecuredSource({**SUBJECT, **options}, clock).token().value


def token(header: Any = None, signature: str = "", **claims: Any) -> str:
    return f"{section(header or {'alg': 'none'})}.{section(claims)}.{signature}"


def accepted(text: str, clock: ManualClock, **options: str) -> str:
    return UnsecuredValidator(options, clock).validate(text).principal


def test_a_made_token_is_accepted() -> None:
    clock = ManualClock()
    assert accepted(made(clock), clock) == "alice"


def test_claims_come_from_the_jaas_entry() -> None:
    clock = ManualClock()
    text = made(
        clock,
        unsecuredLoginNumberClaim_age="4.5",
        unsecuredLoginListClaim_scope="|a|b",
        unsecuredLoginLifetimeSeconds="10",
    )
    claims = read_object(sections(text)[1])
    now = clock.time_ms() / 1000
    assert claims == {"sub": "alice", "age": 4.5, "scope": ["a", "b"], "iat": now, "exp": now + 10}


def test_a_token_expires() -> None:
    clock = ManualClock()
    text = made(clock, unsecuredLoginLifetimeSeconds="10")
    clock.advance(9_999)
    assert accepted(text, clock) == "alice"
    clock.advance(2)
    with pytest.raises(InvalidToken, match="expired"):
        accepted(text, clock)
    assert accepted(text, clock, unsecuredValidatorAllowableClockSkewMs="1000") == "alice"


def test_a_missing_scope_is_named_to_the_client() -> None:
    clock = ManualClock()
    options = {"unsecuredValidatorRequiredScope": "read write"}
    assert accepted(made(clock, unsecuredLoginListClaim_scope=",read,write,x"), clock, **options) == "alice"
    with pytest.raises(InvalidToken) as refused:
        accepted(made(clock, unsecuredLoginListClaim_scope=",read"), clock, **options)
    assert (refused.value.status, refused.value.scope) == ("insufficient_scope", "[read, write]")


def test_other_claims_may_name_the_principal_and_the_scope() -> None:
    clock = ManualClock()
    text = made(
        clock,
        unsecuredLoginStringClaim_name="bob",
        unsecuredLoginStringClaim_roles="admin",
        unsecuredLoginPrincipalClaimName="name",
    )
    options = {
        "unsecuredValidatorPrincipalClaimName": "name",
        "unsecuredValidatorScopeClaimName": "roles",
        "unsecuredValidatorRequiredScope": "admin",
    }
    assert accepted(text, clock, **options) == "bob"


@pytest.mark.parametrize(
    ("header", "signature", "claims"),
    [
        ({"alg": "RS256"}, "", {}),
        ({"alg": "None"}, "", {}),
        ({"typ": "JWT"}, "", {}),
        (None, "c2ln", {}),
        (None, "", {"sub": None}),
        (None, "", {"sub": " "}),
        (None, "", {"exp": None}),
        (None, "", {"exp": "tomorrow"}),
        (None, "", {"iat": 9_999_999_999}),
        (None, "", {"iat": 1_800_000_000, "exp": 1_800_000_000}),
    ],
)
def test_other_tokens_are_refused(header: Any, signature: str, claims: dict[str, Any]) -> None:
    text = token(header, signature, **{"sub": "alice", "exp": 1_800_000_000, **claims})
    with pytest.raises(InvalidToken):
        accepted(text, ManualClock())


def test_a_client_without_a_described_token_cannot_log_in() -> None:
    with pytest.raises(SaslError, match="unsecuredLoginStringClaim_sub"):
        UnsecuredSource({}, ManualClock()).token()


@pytest.mark.parametrize(
    "options",
    [
        {"unsecuredLoginStringClaim_exp": "1"},
        {"unsecuredLoginNumberClaim_n": "many"},
        {"unsecuredLoginLifetimeSeconds": "long"},
        {"unsecuredLoginExtension_bad1": "x"},
    ],
)
def test_invalid_options_of_a_client_are_config_errors(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        UnsecuredSource({**SUBJECT, **options}, ManualClock())


def test_extensions_need_a_token() -> None:
    with pytest.raises(ConfigError, match="without a token"):
        UnsecuredSource({"unsecuredLoginExtension_traceId": "1"}, ManualClock())
    with_token = UnsecuredSource({**SUBJECT, "unsecuredLoginExtension_traceId": "1"}, ManualClock())
    assert with_token.extensions == {"traceId": "1"}


def test_a_negative_clock_skew_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="AllowableClockSkewMs"):
        UnsecuredValidator({"unsecuredValidatorAllowableClockSkewMs": "-1"}, ManualClock())
