"""The kinds of security that a cluster on one machine can have, by the name that users give."""

from __future__ import annotations

from enum import Enum

#: The mechanism of `SASL_SSL` alone, and of the brokers among themselves.
DEFAULT_MECHANISM = "SCRAM-SHA-512"


class SecurityMode(Enum):
    """The value is the name for users: a protocol, `mTLS`, or a mechanism of SASL_SSL."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    MTLS = "mTLS"
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = DEFAULT_MECHANISM
    OAUTHBEARER = "OAUTHBEARER"

    @classmethod
    def parse(cls, name: str) -> SecurityMode:
        """Read a name; `ValueError` lists the known ones."""
        wanted = name.upper().removeprefix("SASL_SSL/")
        if wanted == "SASL_SSL":
            return cls.SCRAM_SHA_512
        for mode in cls:
            if mode.value.upper() == wanted:
                return mode
        known = ", ".join(mode.value for mode in cls)
        raise ValueError(f"security={name!r} is not known; use one of {known}, or SASL_SSL")

    @property
    def protocol(self) -> str:
        """The security protocol of the clients' listener, which is also the listener's name."""
        if self in (SecurityMode.PLAINTEXT, SecurityMode.SSL):
            return str(self.value)
        return "SSL" if self is SecurityMode.MTLS else "SASL_SSL"

    @property
    def mechanism(self) -> str | None:
        """The SASL mechanism of clients; None without SASL."""
        return str(self.value) if self.protocol == "SASL_SSL" else None
