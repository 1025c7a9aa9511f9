"""OAUTHBEARER from configs: the validator of a listener, and the source of a client's tokens.

Kafka selects its implementations by the names of Java classes. The names of Kafka's own classes, of 4.3 and
of older releases, select ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.config.definition import ConfigError
from moldau.security.sasl.oauthbearer.token import TokenSource, TokenValidator
from moldau.security.sasl.oauthbearer.unsecured import UnsecuredSource, UnsecuredValidator, extensions_of
from moldau.security.sasl.oauthbearer.urls import DEFAULT_TIMEOUT_SECONDS, Endpoint

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger(__name__)

LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
#: A token that the caller has already, as an option of the JAAS entry; the name is Strimzi's.
TOKEN_OPTION: Final = "oauth.access.token"

_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
_UNSECURED = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecured"
_SIGNED_VALIDATORS = (
    f"{_PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED_VALIDATORS = (f"{_UNSECURED}ValidatorCallbackHandler",)
_RETRIEVING_LOGINS = (
    f"{_PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
)
_UNSECURED_LOGINS = (f"{_UNSECURED}LoginCallbackHandler",)
_JWT_VALIDATORS = (f"{_PACKAGE}DefaultJwtValidator", f"{_PACKAGE}BrokerJwtValidator")
_JWT_RETRIEVERS = tuple(f"{_PACKAGE}{name}JwtRetriever" for name in ("Default", "ClientCredentials", "File"))
_CREDENTIALS = "sasl.oauthbearer.client.credentials."
_JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_EXTENSION = "extension_"

#: Returns the text of a config of the mechanism, or None.
Get = Callable[[str], str | None]


def validator_of(
    get: Get, options: Mapping[str, str], properties: Mapping[str, str], clock: Clock
) -> TokenValidator:
    """Return the validator of a listener; `options` are those of its JAAS entry.

    Without a callback handler, a JWKS endpoint selects signed tokens: Kafka accepts unsecured tokens then.
    """
    name = "sasl.server.callback.handler.class"
    handler = _text(get, name)
    _check_class(name, handler, (*_SIGNED_VALIDATORS, *_UNSECURED_VALIDATORS))
    if handler in _UNSECURED_VALIDATORS or (handler is None and _text(get, _JWKS_URL) is None):
        logger.warning(
            "OAUTHBEARER accepts unsecured tokens, which every client can make: set %s outside development",
            _JWKS_URL,
        )
        return UnsecuredValidator(options, clock)
    name = "sasl.oauthbearer.jwt.validator.class"
    _check_class(name, _text(get, name), _JWT_VALIDATORS)
    return _signed(get, options, properties, clock)


def _signed(
    get: Get, options: Mapping[str, str], properties: Mapping[str, str], clock: Clock
) -> TokenValidator:
    from moldau.security.sasl.oauthbearer.jwks import Jwks, RefreshSettings
    from moldau.security.sasl.oauthbearer.signed import Demands, SignedValidator

    endpoint = _endpoint(get, _JWKS_URL, options, properties)
    refresh = RefreshSettings(
        refresh_ms=_integer(get, "sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000),
        backoff_ms=_integer(get, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100),
        max_backoff_ms=_integer(get, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10_000),
    )
    audiences = (_text(get, "sasl.oauthbearer.expected.audience") or "").split(",")
    demands = Demands(
        issuer=_text(get, "sasl.oauthbearer.expected.issuer"),
        audiences=frozenset(name.strip() for name in audiences if name.strip()),
        clock_skew_ms=_integer(get, "sasl.oauthbearer.clock.skew.seconds", 30) * 1000,
        scope_claim=_text(get, "sasl.oauthbearer.scope.claim.name") or "scope",
        subject_claim=_text(get, "sasl.oauthbearer.sub.claim.name") or "sub",
    )
    return SignedValidator(Jwks(endpoint.read, refresh, clock), demands, clock)


def source_of(
    get: Get,
    options: Mapping[str, str],
    properties: Mapping[str, str],
    clock: Clock,
    randomness: Randomness,
) -> TokenSource:
    """Return the source of a client's tokens: a given token, or the configured endpoint or file."""
    if token := options.get(TOKEN_OPTION):
        from moldau.security.sasl.oauthbearer.sources import RefreshingSource

        return RefreshingSource(lambda: token, extensions_of(options, _EXTENSION), clock, randomness)
    name = "sasl.login.callback.handler.class"
    handler = _text(get, name)
    _check_class(name, handler, (*_RETRIEVING_LOGINS, *_UNSECURED_LOGINS))
    if handler in _UNSECURED_LOGINS or (handler is None and _text(get, _TOKEN_URL) is None):
        return UnsecuredSource(options, clock)
    name = "sasl.oauthbearer.jwt.retriever.class"
    _check_class(name, _text(get, name), _JWT_RETRIEVERS)
    return _retrieving(get, options, properties, clock, randomness)


def _retrieving(
    get: Get,
    options: Mapping[str, str],
    properties: Mapping[str, str],
    clock: Clock,
    randomness: Randomness,
) -> TokenSource:
    from moldau.security.sasl.oauthbearer.sources import RefreshingSource, RefreshWindow, token_file

    endpoint = _endpoint(get, _TOKEN_URL, options, properties)
    retrieve = token_file(endpoint) if endpoint.file is not None else _credentials(get, options, endpoint)
    window = RefreshWindow(
        factor=_number(get, "sasl.login.refresh.window.factor", 0.8),
        jitter=_number(get, "sasl.login.refresh.window.jitter", 0.05),
        min_period_seconds=_integer(get, "sasl.login.refresh.min.period.seconds", 60),
        buffer_seconds=_integer(get, "sasl.login.refresh.buffer.seconds", 300),
    )
    return RefreshingSource(
        retrieve,
        extensions_of(options, _EXTENSION),
        clock,
        randomness,
        window=window,
        subject_claim=_text(get, "sasl.oauthbearer.sub.claim.name") or "sub",
    )


def _credentials(get: Get, options: Mapping[str, str], endpoint: Endpoint) -> Callable[[], str]:
    """Return the grant; the configs of 4.1 are preferred to the JAAS options they replace (KIP-1139)."""
    from moldau.security.sasl.oauthbearer.sources import ClientCredentials

    client_id = _text(get, f"{_CREDENTIALS}client.id") or options.get("clientId", "").strip()
    secret = _text(get, f"{_CREDENTIALS}client.secret") or options.get("clientSecret", "").strip()
    if not client_id or not secret:
        raise ConfigError(
            f"{_TOKEN_URL}={endpoint.url} needs {_CREDENTIALS}client.id and client.secret, "
            "or clientId and clientSecret in sasl.jaas.config"
        )
    return ClientCredentials(
        endpoint,
        client_id,
        secret,
        scope=_text(get, "sasl.oauthbearer.scope") or options.get("scope", "").strip() or None,
        urlencode_header=(_text(get, "sasl.oauthbearer.header.urlencode") or "").lower() == "true",
        backoff_ms=_integer(get, "sasl.login.retry.backoff.ms", 100),
        max_backoff_ms=_integer(get, "sasl.login.retry.backoff.max.ms", 10_000),
    )


def _endpoint(get: Get, name: str, options: Mapping[str, str], properties: Mapping[str, str]) -> Endpoint:
    url = _text(get, name)
    if url is None:
        raise ConfigError(f"SASL OAUTHBEARER: {name} is not set")
    timeouts = [
        _integer(get, f"sasl.login.{step}.timeout.ms", int(DEFAULT_TIMEOUT_SECONDS * 1000))
        for step in ("connect", "read")
    ]
    tls = _trust(options) if url.lower().startswith("https:") else None
    return Endpoint.of(name, url, properties, timeout_seconds=max(timeouts) / 1000, tls=tls)


def _trust(options: Mapping[str, str]) -> SSLContext | None:
    """Return the trust in the identity provider from the `ssl.*` options of the JAAS entry; None: default."""
    if not any(name.startswith("ssl.") for name in options):
        return None
    from moldau.security.tls.context import client_context
    from moldau.security.tls.settings import TlsSettings

    return client_context(TlsSettings.of(options.get))


def _check_class(config: str, name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in known:
        raise ConfigError(f"{config}={name} is not supported; supported are {', '.join(known)}")


def _text(get: Get, name: str) -> str | None:
    return (get(name) or "").strip() or None


def _integer(get: Get, name: str, default: int) -> int:
    text = _text(get, name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{name}={text} is not a number") from None
    if value < 0:
        raise ConfigError(f"{name}={text} must not be negative")
    return value


def _number(get: Get, name: str, default: float) -> float:
    text = _text(get, name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise ConfigError(f"{name}={text} is not a number") from None
