"""The key that signs requests between workers (KIP-507): created by the leader, read from the config topic.

The leader replaces it after `inter.worker.key.ttl.ms`. Without a valid signature the internal endpoints
refuse a request, so that only workers of the group can write configurations of tasks.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.http.errors import ApiError
from moldau.pipelines.connect.storage import config_records as records
from moldau.pipelines.connect.storage.store import Store

logger = logging.getLogger(__name__)

SIGNATURE: Final = "X-Connect-Authorization"
ALGORITHM: Final = "X-Connect-Request-Signature-Algorithm"
_HMAC: Final = "HmacSHA256"
_KEY_BYTES: Final = 32
_CHECK_S: Final = 10.0
_SUPPORTED: Final = (_HMAC,)


class SessionKeys:
    def __init__(self, store: Store, ttl_ms: int, clock: Clock) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        self._clock = clock

    async def keep(self, leads: Callable[[], bool]) -> None:
        """Replace the key whenever it has expired, while this worker leads."""
        while True:
            await asyncio.sleep(_CHECK_S)
            if leads():
                try:
                    await self.renew()
                except KafkaError as error:
                    logger.warning("The session key could not be replaced: %s", error)

    async def renew(self) -> None:
        """Write a new key if there is none, or if it has expired; called by the leader."""
        key, now = self._store.configs.session_key, self._clock.time_ms()
        if key is None or (self._ttl_ms and now - key.created_ms >= self._ttl_ms):
            record = records.session_key(secrets.token_bytes(_KEY_BYTES), _HMAC, now)
            await self._store.config_log.append([record])

    def sign(self, body: bytes) -> dict[str, str]:
        """Return the headers of a signed request; `ApiError` 503 without a key."""
        return {SIGNATURE: base64.b64encode(self._signature(body)).decode(), ALGORITHM: _HMAC}

    def verify(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Check a request; `ApiError` 400, 403 or 503 if it is not from a worker of the group."""
        text, algorithm = headers.get(SIGNATURE.lower()), headers.get(ALGORITHM.lower())
        if text is None or algorithm is None:
            raise ApiError(400, 400, "Internal request missing required signature")
        if algorithm not in _SUPPORTED:
            raise ApiError(
                400,
                400,
                f"This worker does not support the '{algorithm}' key signing algorithm used by other "
                f"workers. This worker is configured to use: [{', '.join(_SUPPORTED)}]. Check that all "
                "workers' configuration files permit the same set of signature algorithms, and correct any "
                "misconfigured worker and restart it.",
            )
        try:
            signature = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ApiError(400, 400, str(error)) from None
        if not hmac.compare_digest(signature, self._signature(body)):
            raise ApiError(403, 403, "Internal request contained invalid signature.")

    def _signature(self, body: bytes) -> bytes:
        key = self._store.configs.session_key
        if key is None:
            raise ApiError(
                503,
                503,
                "This worker is still starting up and has not been able to read a session key from the "
                "config topic yet",
            )
        return hmac.new(key.key, body, hashlib.sha256).digest()
