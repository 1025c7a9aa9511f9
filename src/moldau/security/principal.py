"""Principals: who a connection belongs to (`User:alice`), and their form in Envelopes (KIP-590)."""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import decode, encode_bytes
from moldau.protocol.stored.principal import DefaultPrincipalData

USER = "User"
_ENVELOPE_VERSION = 0


class KafkaPrincipal(NamedTuple):
    type: str
    name: str
    #: Whether the client logged in with a delegation token, which must not create further tokens.
    token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")


def parse_principal(text: str) -> KafkaPrincipal:
    """Parse `User:alice`."""
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return KafkaPrincipal(kind, name)


def encode_principal(principal: KafkaPrincipal) -> bytes:
    """Encode a principal for an Envelope, as Kafka's default principal builder does."""
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.token_authenticated
    )
    return _ENVELOPE_VERSION.to_bytes(2, "big") + encode_bytes(data, _ENVELOPE_VERSION)


def decode_principal(data: bytes | None) -> KafkaPrincipal:
    try:
        if data is None or int.from_bytes(data[:2], "big") != _ENVELOPE_VERSION:
            raise DecodeError("unknown version of the principal")
        principal = decode(DefaultPrincipalData, data[2:], _ENVELOPE_VERSION)
    except DecodeError as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            f"Failed to deserialize client principal from envelope: {error}",
        ) from error
    return KafkaPrincipal(principal.type, principal.name, principal.token_authenticated)
