"""Send the calls of a registry client over HTTP: authentication, TLS, retries and failover between URLs.

A failed attempt moves to the next URL. When all URLs have failed, the next round waits with exponential
back-off and full jitter, up to `max.retries` rounds. The URL that answered is the first one of the next call.
All operations but DELETE may be repeated; a DELETE is repeated only if no connection was made.

This module imports `httpx2`; the clients import it when they send their first request.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Generator
from typing import Any, TypeVar

import httpx2

from moldau.client.registry.calls import Call
from moldau.client.registry.settings import RegistrySettings
from moldau.client.registry.types import RegistryError
from moldau.client.wire.security import SecuritySettings

T = TypeVar("T")

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_HEADERS = {
    "Accept": f"{_MEDIA_TYPE}, application/vnd.schemaregistry+json, application/json",
    "Confluent-Accept-Unknown-Properties": "true",
}
_RETRIABLE = frozenset({408, 429, 500, 502, 503, 504})
#: A token is replaced when this part of its time has passed.
_TOKEN_LIFE = 0.8


class Rotation:
    """The URL that answered last; shared by the calls of a client."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self.urls = urls
        self.current = 0


class Attempts:
    """The attempts of one call: which URL is next, and how long to wait before it."""

    def __init__(self, rotation: Rotation, settings: RegistrySettings, *, repeatable: bool) -> None:
        self._rotation = rotation
        self._settings = settings
        self._repeatable = repeatable
        self._index = rotation.current
        self._failures = 0

    @property
    def url(self) -> str:
        return self._rotation.urls[self._index]

    def answered(self) -> None:
        self._rotation.current = self._index

    def delay(self, *, connected: bool) -> float | None:
        """Count a failure and move to the next URL; return the seconds to wait, or None to give up."""
        if connected and not self._repeatable:
            return None
        self._failures += 1
        self._index = (self._index + 1) % len(self._rotation.urls)
        rounds, within_round = divmod(self._failures, len(self._rotation.urls))
        if within_round:
            return 0.0
        if rounds > self._settings.max_retries:
            return None
        wait_ms: int = self._settings.retries_wait_ms << min(rounds - 1, 16)
        longest = min(wait_ms, self._settings.retries_max_wait_ms)
        return random.random() * longest / 1000

    def next_delay(self, outcome: httpx2.Response | httpx2.TransportError) -> float | None:
        """Return the delay before the next attempt, or None if the outcome stands."""
        if isinstance(outcome, httpx2.Response):
            if outcome.status_code in _RETRIABLE:
                return self.delay(connected=True)
            self.answered()
            return None
        return self.delay(connected=not isinstance(outcome, httpx2.ConnectError | httpx2.ConnectTimeout))


def _result(call: Call[T], url: str, outcome: httpx2.Response | httpx2.TransportError) -> T:
    """Return what the call reads from the answer, or raise its error."""
    if not isinstance(outcome, httpx2.Response):
        message = f"The schema registry {url} cannot be reached: {outcome or type(outcome).__name__}"
        raise RegistryError(0, -1, message) from outcome
    try:
        answer = outcome.json() if outcome.content else None
    except ValueError:
        answer = None
    if outcome.is_success:
        try:
            return call.read(answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"Unexpected answer of {call.method} {call.path} from {url}: {outcome.text[:200]}"
            raise RegistryError(outcome.status_code, -1, text) from error
    if not isinstance(answer, dict):
        answer = {}
    message = answer.get("message") or outcome.text[:200] or f"HTTP {outcome.status_code}"
    raise RegistryError(outcome.status_code, int(answer.get("error_code") or -1), str(message))


class SyncTransport:
    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._rotation = Rotation(settings.urls)
        self._client = httpx2.Client(**_options(settings))

    def send(self, call: Call[T]) -> T:
        attempts = Attempts(self._rotation, self._settings, repeatable=call.method != "DELETE")
        while True:
            url = attempts.url
            outcome: httpx2.Response | httpx2.TransportError
            try:
                outcome = self._client.request(call.method, url + call.path, **_content(call))
            except httpx2.TransportError as error:
                outcome = error
            delay = attempts.next_delay(outcome)
            if delay is None:
                return _result(call, url, outcome)
            time.sleep(delay)

    def close(self) -> None:
        self._client.close()


class AsyncTransport:
    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._rotation = Rotation(settings.urls)
        self._client = httpx2.AsyncClient(**_options(settings))

    async def send(self, call: Call[T]) -> T:
        attempts = Attempts(self._rotation, self._settings, repeatable=call.method != "DELETE")
        while True:
            url = attempts.url
            outcome: httpx2.Response | httpx2.TransportError
            try:
                outcome = await self._client.request(call.method, url + call.path, **_content(call))
            except httpx2.TransportError as error:
                outcome = error
            delay = attempts.next_delay(outcome)
            if delay is None:
                return _result(call, url, outcome)
            await asyncio.sleep(delay)

    async def close(self) -> None:
        await self._client.aclose()


def _content(call: Call[Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"params": dict(call.query)}
    if call.body is not None:
        content |= {"json": call.body, "headers": {"Content-Type": _MEDIA_TYPE}}
    return content


def _options(settings: RegistrySettings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "auth": _authentication(settings),
        "headers": {**_HEADERS, **settings.headers},
        "proxy": settings.proxy,
        "timeout": settings.timeout_seconds,
        # Proxies of the environment are for the internet; a registry is named by its own address.
        "trust_env": False,
    }
    if any(url.startswith("https:") for url in settings.urls):
        options["verify"] = SecuritySettings.from_properties(
            {"security.protocol": "SSL", **settings.ssl}
        ).context()
    return options


def _authentication(settings: RegistrySettings) -> httpx2.Auth | None:
    if settings.user_info is not None:
        return httpx2.BasicAuth(*settings.user_info)
    return _Bearer(settings.bearer) if settings.bearer else None


class _Bearer(httpx2.Auth):
    """A token given once, by a function, or by an identity provider (client credentials)."""

    requires_response_body = True

    def __init__(self, properties: Any) -> None:
        self._properties = properties
        self._token: str | None = properties.get("token")
        self._expiry = float("inf")

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        source = self._properties["credentials.source"]
        properties = self._properties
        if source == "CUSTOM":
            given = properties["custom.provider.function"](properties.get("custom.provider.config") or {})
            properties = {n.removeprefix("bearer.auth."): v for n, v in given.items()}
            self._token = properties["token"]
        elif source == "OAUTHBEARER" and (self._token is None or time.monotonic() >= self._expiry):
            self._take((yield self._token_request()))
        request.headers["Authorization"] = f"Bearer {self._token}"
        if (cluster := properties.get("logical.cluster")) is not None:
            request.headers["target-sr-cluster"] = cluster
        if (pool := properties.get("identity.pool.id")) is not None:
            request.headers["Confluent-Identity-Pool-Id"] = pool
        yield request

    def _token_request(self) -> httpx2.Request:
        data = {"grant_type": "client_credentials"}
        if (scope := self._properties.get("scope")) is not None:
            data["scope"] = scope
        request = httpx2.Request("POST", self._properties["issuer.endpoint.url"], data=data)
        login = httpx2.BasicAuth(self._properties["client.id"], self._properties["client.secret"])
        return next(login.auth_flow(request))

    def _take(self, response: httpx2.Response) -> None:
        if not response.is_success:
            raise RegistryError(response.status_code, -1, f"No token: {response.text[:200]}")
        answer = response.json()
        self._token = answer["access_token"]
        life = float(answer.get("expires_in") or 300)
        self._expiry = time.monotonic() + life * _TOKEN_LIFE
