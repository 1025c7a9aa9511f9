"""The public keys of an identity provider (JWKS, RFC 7517), fetched when they are needed.

Keys are fetched with the first login, again after `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and early for
an unknown key id, because providers rotate their keys. Invariants:

- one fetch at a time; meanwhile other logins use the keys that are known, or wait if there are none;
- an unknown key id causes at most one early fetch a minute, and all of them together one a second;
- if a fetch fails, the known keys stay in use, and the next attempt waits longer each time.

All methods may block: they run in a thread pool, never on the event loop.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.base.clock import Clock
from moldau.security.sasl.oauthbearer.token import InvalidToken
from moldau.security.sasl.oauthbearer.urls import FetchFailed

logger = logging.getLogger(__name__)

_MISSING_KEY_SECONDS: Final = 60.0
_EARLY_REFRESH_SECONDS: Final = 1.0
_MAX_MISSING_KEYS: Final = 16
_MAX_KEY_ID_LENGTH: Final = 1000
_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2048
#: The type of the key that each algorithm needs. Symmetric algorithms and `none` are missing on purpose: a
#: public key must not be used as the secret of an HMAC.
KEY_TYPES: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}


@dataclass(frozen=True, slots=True)
class PublicKey:
    key_id: str | None
    key_type: str
    algorithm: str | None
    #: A key of joserfc.
    key: Any

    def suits(self, key_id: str | None, algorithm: str) -> bool:
        return (
            (key_id is None or self.key_id == key_id)
            and self.key_type == KEY_TYPES[algorithm]
            and self.algorithm in (None, algorithm)
        )


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    refresh_ms: int = 3_600_000
    backoff_ms: int = 100
    max_backoff_ms: int = 10_000


class Jwks:
    def __init__(self, fetch: Callable[[], bytes], settings: RefreshSettings, clock: Clock) -> None:
        self._fetch = fetch
        self._settings = settings
        self._clock = clock
        self._keys: tuple[PublicKey, ...] | None = None
        self._fetched_at = 0.0
        self._failures = 0
        self._failure = ""
        self._retry_at = float("-inf")
        self._early_at = float("-inf")
        #: When the next early fetch for a missing key id is possible.
        self._missing: dict[str, float] = {}
        #: Held during a fetch.
        self._fetching = threading.Lock()
        #: Protects the fields above; held briefly.
        self._lock = threading.Lock()

    def find(self, key_id: str | None, algorithm: str) -> Sequence[PublicKey]:
        """Return the keys that may have signed a token; `InvalidToken` if there are none."""
        found = _suitable(self._current(), key_id, algorithm)
        if not found and key_id is not None and self._claims_early_refresh(key_id):
            self._refresh()
            found = _suitable(self._keys or (), key_id, algorithm)
        if not found:
            raise InvalidToken(f"no key of the JWKS endpoint has this key id and suits {algorithm}")
        return found

    def _current(self) -> tuple[PublicKey, ...]:
        now = self._clock.monotonic()
        if self._keys is None or now - self._fetched_at >= self._settings.refresh_ms / 1000:
            self._refresh()
        keys = self._keys
        if keys is None:
            raise InvalidToken(f"the keys of the JWKS endpoint are not available: {self._failure}")
        return keys

    def _claims_early_refresh(self, key_id: str) -> bool:
        """Return whether this login fetches the keys for an unknown key id."""
        if len(key_id) > _MAX_KEY_ID_LENGTH:
            return False
        with self._lock:
            now = self._clock.monotonic()
            if now < self._missing.get(key_id, now) or now < self._early_at:
                return False
            self._missing.pop(key_id, None)
            while len(self._missing) >= _MAX_MISSING_KEYS:
                del self._missing[next(iter(self._missing))]
            self._missing[key_id] = now + _MISSING_KEY_SECONDS
            self._early_at = now + _EARLY_REFRESH_SECONDS
            return True

    def _refresh(self) -> None:
        """Fetch the keys, unless another thread does and there are keys to use meanwhile."""
        version = self._fetched_at
        if not self._fetching.acquire(blocking=self._keys is None):
            return
        try:
            if self._fetched_at == version and self._clock.monotonic() >= self._retry_at:
                self._fetch_keys()
        finally:
            self._fetching.release()

    def _fetch_keys(self) -> None:
        try:
            keys = parse_keys(self._fetch())
        except (FetchFailed, ValueError) as error:
            self._failed(str(error))
            return
        with self._lock:
            self._keys, self._failures = keys, 0
            self._fetched_at = self._clock.monotonic()
            for key in keys:
                self._missing.pop(key.key_id or "", None)
        logger.info("fetched %d keys for tokens of SASL OAUTHBEARER", len(keys))

    def _failed(self, reason: str) -> None:
        backoff_ms = self._settings.backoff_ms * 2 ** min(self._failures, 30)
        self._failures += 1
        self._failure = reason
        self._retry_at = self._clock.monotonic() + min(backoff_ms, self._settings.max_backoff_ms) / 1000
        logger.warning("the keys for tokens of SASL OAUTHBEARER could not be fetched: %s", reason)


def _suitable(keys: Sequence[PublicKey], key_id: str | None, algorithm: str) -> list[PublicKey]:
    return [key for key in keys if key.suits(key_id, algorithm)]


def parse_keys(data: bytes) -> tuple[PublicKey, ...]:
    """Return the usable public keys of a JWKS; `ValueError` if it is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("the JWKS is not JSON") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("the JWKS has no list of keys")
    keys = [_parse_key(entry) for entry in entries[:_MAX_KEYS] if isinstance(entry, dict)]
    return tuple(key for key in keys if key is not None)


def _parse_key(entry: dict[str, Any]) -> PublicKey | None:
    """Return a key; None if it is not a public key for signatures."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    key_type, key_id, algorithm = entry.get("kty"), entry.get("kid"), entry.get("alg")
    if key_type not in tuple(KEY_TYPES.values()) or entry.get("use", "sig") != "sig":
        return None
    try:
        key = JWKRegistry.import_key(entry)
        if key_type == "RSA" and key.public_key.key_size < _MIN_RSA_BITS:  # type: ignore[union-attr]
            logger.warning("an RSA key of the JWKS has less than %d bits and is not used", _MIN_RSA_BITS)
            return None
    except (JoseError, ValueError, TypeError, KeyError) as error:
        logger.warning("a key of the JWKS is not used: %s", error)
        return None
    return PublicKey(
        key_id if isinstance(key_id, str) else None,
        key_type,
        algorithm if isinstance(algorithm, str) else None,
        key,
    )
