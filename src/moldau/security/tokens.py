"""Delegation tokens (KIP-48): what is derived from their records.

A record has no secret. The HMAC of the token's id with `delegation.token.secret.key` is the secret that the
owner receives; every node with the key can compute it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.protocol.stored.metadata import DelegationTokenRecord
from moldau.security.principal import KafkaPrincipal

SECRET_KEY_CONFIG: Final = "delegation.token.secret.key"


def token_hmac(secret_key: str, token_id: str) -> bytes:
    import hmac

    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def may_renew(token: DelegationTokenRecord, principal: KafkaPrincipal) -> bool:
    """Return whether a principal may renew and expire a token."""
    return str(principal) == token.owner or str(principal) in token.renewers


def owner_or_renewer(token: DelegationTokenRecord, principal: KafkaPrincipal) -> bool:
    """Return whether a token belongs to a principal: as owner, as requester or as renewer."""
    return str(principal) == token.requester or may_renew(token, principal)


def is_expired(token: DelegationTokenRecord, time_ms: int) -> bool:
    return token.max_timestamp < time_ms or token.expiration_timestamp < time_ms


class TokensByHmac:
    """Finds tokens by their HMAC. An HMAC depends on the id alone, so it is computed once for each token."""

    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key
        self._ids: dict[bytes, str] = {}
        self._known: set[str] = set()

    def find(
        self, tokens: Mapping[str, DelegationTokenRecord], wanted: bytes
    ) -> DelegationTokenRecord | None:
        """Return the token among `tokens` that has this HMAC."""
        if len(self._known) > 2 * len(tokens):
            self._ids, self._known = {}, set()
        for token_id in tokens.keys() - self._known:
            self._ids[token_hmac(self._secret_key, token_id)] = token_id
            self._known.add(token_id)
        return tokens.get(self._ids.get(bytes(wanted), ""))
