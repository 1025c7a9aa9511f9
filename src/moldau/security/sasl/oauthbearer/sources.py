"""Tokens of a client from an identity provider or a file, kept until they must be refreshed.

A token is fetched with the first login. A later login fetches another one when the window of
`sasl.login.refresh.*` is reached; if that fails, the old token is used as long as it is valid.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlencode

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.token import (
    BearerToken,
    InvalidToken,
    read_object,
    sections,
    text_claim,
    time_claim,
)
from moldau.security.sasl.oauthbearer.urls import Endpoint, FetchFailed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefreshWindow:
    """When a token is replaced, as parts of its lifetime and in seconds (`sasl.login.refresh.*`)."""

    factor: float = 0.8
    jitter: float = 0.05
    min_period_seconds: int = 60
    buffer_seconds: int = 300

    def ends_at_ms(self, now_ms: int, expires_at_ms: int, randomness: Randomness) -> int:
        """Return when a token that is fetched now must be replaced."""
        lifetime_ms = expires_at_ms - now_ms
        part = self.factor + self.jitter * (randomness.getrandbits(32) / 2**32)
        chosen = now_ms + int(lifetime_ms * part)
        earliest = now_ms + self.min_period_seconds * 1000
        latest = expires_at_ms - self.buffer_seconds * 1000
        # A short token leaves no room for the limits, which are ignored then, as in Kafka.
        return max(min(chosen, latest), earliest) if earliest <= latest else chosen


class RefreshingSource:
    blocking = True

    def __init__(
        self,
        retrieve: Callable[[], str],
        extensions: Mapping[str, str],
        clock: Clock,
        randomness: Randomness,
        *,
        window: RefreshWindow = RefreshWindow(),
        subject_claim: str = "sub",
    ) -> None:
        self.extensions = dict(extensions)
        self._retrieve = retrieve
        self._clock = clock
        self._randomness = randomness
        self._window = window
        self._subject_claim = subject_claim
        self._token: BearerToken | None = None
        self._refresh_at_ms = 0
        self._lock = threading.Lock()

    def token(self) -> BearerToken:
        with self._lock:
            now_ms = self._clock.time_ms()
            if self._token is None or now_ms >= self._refresh_at_ms:
                self._refresh(now_ms)
            if self._token is None:
                raise SaslError("OAUTHBEARER: there is no token")
            return self._token

    def _refresh(self, now_ms: int) -> None:
        try:
            token = self._parse(self._retrieve())
        except (FetchFailed, InvalidToken) as error:
            if self._token is None or now_ms >= self._token.expires_at_ms:
                raise SaslError(f"OAUTHBEARER: no token is available: {error}") from None
            logger.warning("the token of SASL OAUTHBEARER could not be refreshed: %s", error)
            return
        self._token = token
        self._refresh_at_ms = self._window.ends_at_ms(now_ms, token.expires_at_ms, self._randomness)

    def _parse(self, text: str) -> BearerToken:
        """Read a token without verifying it: that is the broker's task."""
        token = text.strip()
        claims = read_object(sections(token)[1])
        return BearerToken(
            token,
            text_claim(claims, self._subject_claim),
            time_claim(claims, "exp", required=True) or 0,
            time_claim(claims, "iat", required=False),
        )


def token_file(endpoint: Endpoint) -> Callable[[], str]:
    """Return what reads the token from a file."""
    return lambda: endpoint.read().decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client credentials grant (RFC 6749 §4.4)."""

    endpoint: Endpoint
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    urlencode_header: bool = False
    backoff_ms: int = 100
    max_backoff_ms: int = 10_000

    def __call__(self) -> str:
        """Request a token; failed attempts are repeated for at most `max_backoff_ms`."""
        deadline = time.monotonic() + self.max_backoff_ms / 1000
        backoff_seconds = self.backoff_ms / 1000
        while True:
            try:
                return self._request()
            except FetchFailed as failure:
                if failure.final or time.monotonic() + backoff_seconds > deadline:
                    raise
                logger.info("the token is requested again: %s", failure)
            time.sleep(backoff_seconds)
            backoff_seconds *= 2

    def _request(self) -> str:
        fields = {"grant_type": "client_credentials"}
        if self.scope:
            fields["scope"] = self.scope
        headers = {
            "Authorization": self._authorization(),
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        answer = self.endpoint.read(urlencode(fields).encode(), headers)
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError):
            document = None
        token = document.get("access_token") if isinstance(document, dict) else None
        if not isinstance(token, str) or not token.strip():
            raise FetchFailed(f"{self.endpoint.url} answered without an access_token", final=True)
        return token

    def _authorization(self) -> str:
        names = (self.client_id, self.client_secret)
        pair = ":".join(quote_plus(name) if self.urlencode_header else name for name in names)
        return "Basic " + base64.b64encode(pair.encode()).decode("ascii")
