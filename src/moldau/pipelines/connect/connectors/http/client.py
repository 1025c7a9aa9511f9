"""Requests with authentication, retries and back-off, for both directions."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Password,
    Range,
    ValidString,
)
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError

logger = logging.getLogger(__name__)

AUTH: Final = "auth.type"
NONE, BASIC, BEARER, OAUTH2 = "NONE", "BASIC", "BEARER", "OAUTH2"
USER, PASSWORD, TOKEN = "connection.user", "connection.password", "bearer.token"
OAUTH_URL, OAUTH_ID = "oauth2.token.url", "oauth2.client.id"
OAUTH_SECRET, OAUTH_SCOPE = "oauth2.client.secret", "oauth2.client.scope"
OAUTH_PROPERTY: Final = "oauth2.token.property"
MAX_RETRIES, BACKOFF = "max.retries", "retry.backoff.ms"
RETRY_CODES: Final = "retry.on.status.codes"
CONNECT_TIMEOUT, REQUEST_TIMEOUT = "http.connect.timeout.ms", "http.request.timeout.ms"
CA_FILE, CERTIFICATE, KEY_FILE = (
    *("https.ssl.ca.location", "https.ssl.certificate.location", "https.ssl.key.location"),
)
_MAX_BACKOFF_S: Final = 60.0
_TOKEN_MARGIN_S: Final = 30.0
_MAX_RESPONSE_BYTES: Final = 64 << 20


class Refused(ConnectError):
    """The server has answered with an error that is not repeated."""


class Unavailable(RetriableError):
    """All attempts failed; later ones may succeed."""


def define_requests(definition: ConfigDef) -> ConfigDef:
    """Add the settings of requests."""
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        AUTH,
        text,
        NONE,
        high,
        "Authentication: NONE, BASIC, BEARER or OAUTH2 (client credentials).",
        validator=ValidString((NONE, BASIC, BEARER, OAUTH2), ignore_case=True),
    )
    definition.define(USER, text, "", medium, "User for BASIC.")
    definition.define(PASSWORD, ConfigType.PASSWORD, None, medium, "Password for BASIC.")
    definition.define(TOKEN, ConfigType.PASSWORD, None, medium, "Token for BEARER.")
    definition.define(OAUTH_URL, text, "", medium, "URL of the token endpoint for OAUTH2.")
    definition.define(OAUTH_ID, text, "", medium, "Client id for OAUTH2.")
    definition.define(OAUTH_SECRET, ConfigType.PASSWORD, None, medium, "Client secret for OAUTH2.")
    definition.define(OAUTH_SCOPE, text, "", medium, "Scope of the token.")
    definition.define(OAUTH_PROPERTY, text, "access_token", low, "Field of the answer with the token.")
    definition.define(
        MAX_RETRIES,
        ConfigType.INT,
        10,
        medium,
        "How often to repeat a request before it counts as failed.",
        validator=Range(0),
    )
    definition.define(
        BACKOFF,
        ConfigType.INT,
        3000,
        medium,
        "Milliseconds before the first repetition, doubled for each further one, up to a minute. The "
        "header Retry-After of an answer takes precedence.",
        validator=Range(0),
    )
    definition.define(
        RETRY_CODES,
        ConfigType.LIST,
        "408,429,500-",
        medium,
        "Statuses after which to repeat a request: codes and ranges, as 404,500-599 or 500-.",
    )
    definition.define(
        CONNECT_TIMEOUT, ConfigType.INT, 30_000, low, "Milliseconds to connect.", validator=Range(1)
    )
    definition.define(
        REQUEST_TIMEOUT,
        ConfigType.INT,
        30_000,
        low,
        "Milliseconds to wait for an answer.",
        validator=Range(1),
    )
    definition.define(CA_FILE, text, None, medium, "PEM file with certificates to trust.")
    definition.define(CERTIFICATE, text, None, medium, "PEM file with the client's certificate.")
    definition.define(KEY_FILE, text, None, medium, "PEM file with the client's private key.")
    return definition


def check_requests(values: Mapping[str, ConfigValue]) -> None:
    """Add the errors of the settings of requests."""
    needed = {BASIC: (USER,), BEARER: (TOKEN,), OAUTH2: (OAUTH_URL, OAUTH_ID, OAUTH_SECRET)}
    auth = str(values[AUTH].value).upper()
    for name in needed.get(auth, ()):
        if not values[name].value:
            values[name].errors.append(f"Required with auth.type {auth}.")
    try:
        StatusRanges(values[RETRY_CODES].value or [])
    except ConfigError as error:
        values[RETRY_CODES].errors.append(str(error))


class StatusRanges:
    """Codes and ranges of codes."""

    def __init__(self, texts: list[str]) -> None:
        self._ranges = []
        for text in texts:
            low, dash, high = text.partition("-")
            if not low.isdecimal() or (high and not high.isdecimal()):
                raise ConfigError.invalid(RETRY_CODES, texts, f"{text!r} is neither a code nor a range")
            self._ranges.append((int(low), int(high) if high else 599 if dash else int(low)))

    def __contains__(self, status: int) -> bool:
        return any(low <= status <= high for low, high in self._ranges)


class Client:
    """A client with the authentication of a configuration."""

    def __init__(self, config: Mapping[str, Any], wait: Callable[[float], bool]) -> None:
        """`wait` returns True if repetitions have to end."""
        import httpx2

        self._config = config
        self._wait = wait
        self._retry = StatusRanges(config[RETRY_CODES])
        timeout = httpx2.Timeout(config[REQUEST_TIMEOUT] / 1000, connect=config[CONNECT_TIMEOUT] / 1000)
        tls = client_tls(config[CA_FILE], config[CERTIFICATE], config[KEY_FILE])
        self._client = httpx2.Client(timeout=timeout, verify=tls, follow_redirects=True)
        self._transport_error = httpx2.TransportError
        self._token = ""
        self._token_until = 0.0

    def close(self) -> None:
        self._client.close()

    def request(self, method: str, url: str, headers: Mapping[str, str], body: str | None = None) -> Any:
        """Return the answer of a request that succeeded; `Refused` or `Unavailable` otherwise."""
        failures, most = 0, self._config[MAX_RETRIES]
        while True:
            reason, pause_s = "", None
            try:
                answer = self._send(method, url, headers, body)
                if answer.is_success:
                    return answer
                reason = f"{answer.status_code} {answer.reason_phrase}"
                if answer.status_code == 401 and self._token:
                    self._token_until = 0.0
                elif answer.status_code not in self._retry:
                    raise Refused(f"{method} {_bare(url)} was answered with {reason}: {_excerpt(answer)}")
                pause_s = _retry_after(answer)
            except self._transport_error as error:
                reason = f"{type(error).__name__}: {error}"
            if failures >= most:
                raise Unavailable(f"{method} {_bare(url)} failed {failures + 1} times: {reason}")
            if pause_s is None:
                pause_s = min(self._config[BACKOFF] / 1000 * 2 ** min(failures, 20), _MAX_BACKOFF_S)
            failures += 1
            logger.warning("%s %s failed, repeated in %.1f s: %s", method, _bare(url), pause_s, reason)
            if self._wait(pause_s):
                raise Unavailable(f"{method} {_bare(url)} was not finished: the task stops")

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: str | None) -> Any:
        auth, config, given = None, self._config, dict(headers)
        kind = config[AUTH].upper()
        if kind == BASIC:
            auth = (config[USER], _secret(config[PASSWORD]))
        elif kind == BEARER:
            given["Authorization"] = f"Bearer {_secret(config[TOKEN])}"
        elif kind == OAUTH2:
            given["Authorization"] = f"Bearer {self._oauth_token()}"
        content = None if body is None else body.encode()
        answer = self._client.request(method, url, headers=given, content=content, auth=auth)
        if len(answer.content) > _MAX_RESPONSE_BYTES:
            raise Refused(f"The answer of {_bare(url)} is larger than {_MAX_RESPONSE_BYTES} bytes")
        return answer

    def _oauth_token(self) -> str:
        if time.monotonic() < self._token_until:
            return self._token
        config = self._config
        form = {"grant_type": "client_credentials"}
        if config[OAUTH_SCOPE]:
            form["scope"] = config[OAUTH_SCOPE]
        credentials = (config[OAUTH_ID], _secret(config[OAUTH_SECRET]))
        answer = self._client.post(config[OAUTH_URL], data=form, auth=credentials)
        if not answer.is_success:
            raise Refused(f"The token endpoint has answered with {answer.status_code}")
        found = answer.json()
        token = found.get(config[OAUTH_PROPERTY]) if isinstance(found, dict) else None
        if not isinstance(token, str):
            raise Refused(f"The answer of the token endpoint has no {config[OAUTH_PROPERTY]}")
        lasts_s = float(found.get("expires_in") or 300)
        self._token, self._token_until = token, time.monotonic() + max(lasts_s - _TOKEN_MARGIN_S, 1.0)
        return token


def parse_headers(name: str, text: str, separator: str) -> dict[str, str]:
    """Return headers of a text like `Accept: text/plain|X-Team: a`."""
    found = {}
    for each in text.split(separator) if text else ():
        header, colon, value = each.partition(":")
        if not colon or not header.strip():
            raise ConfigError.invalid(name, each.partition(":")[0], "Headers have the form Name: value")
        found[header.strip()] = value.strip()
    return found


def _secret(value: Any) -> str:
    return value.value if isinstance(value, Password) else ""


def _bare(url: str) -> str:
    """Return a URL without query and user, which may be secret."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _excerpt(answer: Any) -> str:
    return str(answer.text)[:300]


def _retry_after(answer: Any) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), 300.0) if text.isdecimal() else None


def client_tls(ca_file: str | None, certificate: str | None, key_file: str | None) -> ssl.SSLContext:
    """Return the TLS context of a client."""
    context = ssl.create_default_context(cafile=ca_file)
    if certificate:
        context.load_cert_chain(certificate, key_file)
    return context
