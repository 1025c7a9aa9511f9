"""The names of Kafka's classes select an implementation, and every mistake is a config error."""

from __future__ import annotations

import random
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.base.clock import ManualClock, SystemClock
from moldau.config.definition import ConfigError
from moldau.security.sasl.oauthbearer.settings import source_of, validator_of
from moldau.security.sasl.oauthbearer.signed import SignedValidator
from moldau.security.sasl.oauthbearer.sources import RefreshingSource
from moldau.security.sasl.oauthbearer.token import InvalidToken
from moldau.security.sasl.oauthbearer.unsecured import UnsecuredSource, UnsecuredValidator
from moldau.security.sasl.oauthbearer.urls import ALLOWED_URLS
from tests.harness.security.certificates import Certificates
from tests.harness.security.identity_provider import IdentityProvider

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
JWKS, TOKENS = "https://idp/jwks", "https://idp/token"
PROPERTIES = {ALLOWED_URLS: f"{JWKS},{TOKENS}"}
WITH_JWKS = {"sasl.oauthbearer.jwks.endpoint.url": JWKS}
WITH_TOKENS = {
    "sasl.oauthbearer.token.endpoint.url": TOKENS,
    "sasl.oauthbearer.client.credentials.client.id": "id",
    "sasl.oauthbearer.client.credentials.client.secret": "secret",
}
SERVER, LOGIN = "sasl.server.callback.handler.class", "sasl.login.callback.handler.class"


def validator(configs: Mapping[str, str]) -> Any:
    return validator_of(configs.get, {}, PROPERTIES, ManualClock())


def source(configs: Mapping[str, str], options: Mapping[str, str] | None = None) -> Any:
    return source_of(configs.get, options or {}, PROPERTIES, ManualClock(), random.Random(1))


@pytest.mark.parametrize(
    "name",
    [
        f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
    ],
)
def test_kafkas_validators_select_signed_tokens(name: str) -> None:
    assert isinstance(validator({SERVER: name, **WITH_JWKS}), SignedValidator)
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url is not set"):
        validator({SERVER: name})


def test_without_a_handler_tokens_are_unsecured_unless_there_is_a_jwks_endpoint() -> None:
    assert isinstance(validator({}), UnsecuredValidator)
    assert isinstance(validator(WITH_JWKS), SignedValidator)
    unsecured = f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    assert isinstance(validator({SERVER: unsecured, **WITH_JWKS}), UnsecuredValidator)


@pytest.mark.parametrize(
    "name",
    [f"{PACKAGE}.OAuthBearerLoginCallbackHandler", f"{PACKAGE}.secured.OAuthBearerLoginCallbackHandler"],
)
def test_kafkas_login_handlers_select_the_token_endpoint(name: str) -> None:
    assert isinstance(source({LOGIN: name, **WITH_TOKENS}), RefreshingSource)
    with pytest.raises(ConfigError, match=r"token\.endpoint\.url is not set"):
        source({LOGIN: name})


def test_without_a_login_handler_the_token_is_unsecured_unless_there_is_an_endpoint() -> None:
    assert isinstance(source({}), UnsecuredSource)
    assert isinstance(source(WITH_TOKENS), RefreshingSource)


def test_credentials_may_come_from_the_jaas_entry() -> None:
    only_url = {"sasl.oauthbearer.token.endpoint.url": TOKENS}
    options = {"clientId": "id", "clientSecret": "s", "scope": "a", "extension_traceId": "1"}
    made = source(only_url, options)
    assert made.extensions == {"traceId": "1"}
    with pytest.raises(ConfigError, match="clientId and clientSecret"):
        source(only_url, {"clientId": "id"})


def test_a_provider_over_https_is_trusted_by_the_jaas_entry(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(certificates.server))
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.ca)}
    with IdentityProvider(context) as provider:
        configs = {"sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url}
        properties = {ALLOWED_URLS: provider.jwks_url}
        trusting = validator_of(configs.get, trust, properties, SystemClock())
        assert trusting.validate(provider.token()).principal == "alice"
        with pytest.raises(InvalidToken, match="CERTIFICATE_VERIFY_FAILED"):
            validator_of(configs.get, {}, properties, SystemClock()).validate(provider.token())


@pytest.mark.parametrize(
    "configs",
    [
        {SERVER: "com.example.Mine"},
        {**WITH_JWKS, "sasl.oauthbearer.jwt.validator.class": "com.example.Mine"},
        {"sasl.oauthbearer.jwks.endpoint.url": "https://elsewhere/jwks"},
        {**WITH_JWKS, "sasl.oauthbearer.clock.skew.seconds": "-1"},
        {**WITH_JWKS, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "often"},
    ],
)
def test_mistakes_of_a_listener_are_config_errors(configs: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"sasl\."):
        validator(configs)


@pytest.mark.parametrize(
    "configs",
    [
        {LOGIN: "com.example.Mine"},
        {**WITH_TOKENS, "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"},
        {**WITH_TOKENS, "sasl.oauthbearer.token.endpoint.url": "https://elsewhere/token"},
        {**WITH_TOKENS, "sasl.login.refresh.window.factor": "often"},
    ],
)
def test_mistakes_of_a_client_are_config_errors(configs: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"sasl\."):
        source(configs)
