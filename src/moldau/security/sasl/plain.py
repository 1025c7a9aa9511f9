"""SASL PLAIN (RFC 4616): the client sends `authzid NUL username NUL password`.

The server knows the passwords from the options `user_<name>` of its JAAS entry. A user that does not exist
costs the same comparison as one that exists. PLAIN protects nothing by itself: use it over TLS.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from moldau.security.principal import USER, KafkaPrincipal
from moldau.security.sasl.mechanism import SaslError

LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER_PREFIX = "user_"


class PlainUsers:
    """The users of one listener, with hashes of their passwords."""

    def __init__(self, options: Mapping[str, str], key: bytes) -> None:
        """Take the users from the options of a JAAS entry; `key` is random."""
        self._key = key
        self._hashes = {
            name.removeprefix(_USER_PREFIX): self._hash(password)
            for name, password in options.items()
            if name.startswith(_USER_PREFIX)
        }
        #: Compared with for unknown users; no password has this hash.
        self._nothing = bytes(hashlib.sha256().digest_size)

    def verify(self, username: str, password: str) -> bool:
        expected = self._hashes.get(username, self._nothing)
        return hmac.compare_digest(self._hash(password), expected)

    def _hash(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8", "surrogatepass"), "sha256")


class PlainServer:
    blocking = False
    session_lifetime_ms: int | None = None

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self._principal: KafkaPrincipal | None = None

    @property
    def complete(self) -> bool:
        return self._principal is not None

    @property
    def principal(self) -> KafkaPrincipal:
        if self._principal is None:
            raise RuntimeError("the exchange is not complete")
        return self._principal

    def evaluate(self, token: bytes) -> bytes:
        if self.complete:
            raise SaslError("Authentication failed: the exchange is already complete")
        authorization_id, username, password = _split(token)
        if not username:
            raise SaslError("Authentication failed: username not specified")
        if not password:
            raise SaslError("Authentication failed: password not specified")
        if not self._users.verify(username, password):
            raise SaslError("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != username:
            raise SaslError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._principal = KafkaPrincipal(USER, username)
        return b""


def _split(token: bytes) -> tuple[str, str, str]:
    parts = token.decode("utf-8", "replace").split("\0", 4)[:4]
    if len(parts) != 3:
        raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    return parts[0], parts[1], parts[2]


class PlainClient:
    blocking = False

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self.complete = False

    def first(self) -> bytes:
        return f"\0{self._username}\0{self._password}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        if self.complete:
            raise SaslError("PLAIN: the server sent a challenge after the end of the exchange")
        self.complete = True
        return None
