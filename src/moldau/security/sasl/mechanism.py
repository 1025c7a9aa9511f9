"""What a SASL mechanism is to a connection: an exchange of tokens that ends with a principal or an error.

A connection passes each token of its peer to `evaluate` and sends the answer. `blocking` marks exchanges
whose `evaluate` may wait for a disk or another server; a connection runs those in the thread pool.

A failed exchange raises `SaslError`. Its `message` is sent to the client and reveals nothing about users; its
`reason` is for the log. Neither contains a secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from moldau.security.principal import KafkaPrincipal

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI)

#: The numbers of SCRAM's mechanisms in records and requests.
SCRAM_TYPES: Final = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384


class SaslError(Exception):
    """A failed authentication (error 58): `message` is for the client, `reason` for the log."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message if reason is None else f"{message} ({reason})")
        self.message = message
        self.reason = message if reason is None else reason
        self._mechanism: str | None = None

    @classmethod
    def invalid_credentials(cls, mechanism: str, reason: str) -> SaslError:
        """Return the error that tells the client only the mechanism, whatever the reason."""
        error = cls(_invalid_credentials(mechanism, "authentication"), reason)
        error._mechanism = mechanism
        return error

    def message_of(self, *, reauthentication: bool) -> str:
        """Return the message for a first authentication or a re-authentication (KIP-368)."""
        if reauthentication and self._mechanism is not None:
            return _invalid_credentials(self._mechanism, "re-authentication")
        return self.message


def _invalid_credentials(mechanism: str, activity: str) -> str:
    return (
        f"Authentication failed during {activity} due to invalid credentials with SASL mechanism {mechanism}"
    )


class SaslServer(Protocol):
    """The server's side of one exchange."""

    @property
    def complete(self) -> bool: ...

    @property
    def blocking(self) -> bool:
        """Whether `evaluate` must run in the thread pool."""
        ...

    @property
    def principal(self) -> KafkaPrincipal:
        """The authenticated principal; valid when the exchange is complete."""
        ...

    @property
    def session_lifetime_ms(self) -> int | None:
        """The milliseconds until the credential expires, counted from the end of the exchange, or None."""
        ...

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a token; `SaslError` if the authentication failed."""
        ...


class SaslClient(Protocol):
    """The client's side of one exchange."""

    @property
    def complete(self) -> bool: ...

    @property
    def blocking(self) -> bool:
        """Whether `first` and `evaluate` must run in the thread pool."""
        ...

    def first(self) -> bytes:
        """Return the token that begins the exchange."""
        ...

    def evaluate(self, challenge: bytes) -> bytes | None:
        """Return the next token, or None if there is nothing to send; `SaslError` if the server failed."""
        ...


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server stores of a password (RFC 5802): it proves a login, and is not enough for one."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


class ScramCredentials(Protocol):
    """The SCRAM credentials in the metadata."""

    def scram(self, mechanism: str, user: str) -> ScramCredential | None: ...


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """What a login with a delegation token needs: the owner, the expiry and the SCRAM credential."""

    owner: KafkaPrincipal
    expiry_ms: int
    credential: ScramCredential = field(repr=False)


class TokenCache(Protocol):
    """The delegation tokens in the metadata."""

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """Return a token that has not been removed, or None."""
        ...
