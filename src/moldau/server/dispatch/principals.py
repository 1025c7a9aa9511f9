"""A caller's principal as an Envelope carries it: a version, then Kafka's own record of it."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import decode, encode_bytes
from moldau.protocol.stored.principal import DefaultPrincipalData

_VERSION = 0


def encode_principal(principal: str) -> bytes:
    """`principal` as it is written in ACLs: its type, a colon, its name."""
    kind, _, name = principal.partition(":")
    data = encode_bytes(DefaultPrincipalData(type=kind, name=name), _VERSION)
    return _VERSION.to_bytes(2, "big") + data


def decode_principal(data: bytes | None) -> str:
    try:
        if data is None or int.from_bytes(data[:2], "big") != _VERSION:
            raise DecodeError("a principal of an unknown version")
        principal = decode(DefaultPrincipalData, data[2:], _VERSION)
    except DecodeError as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            f"Failed to deserialize client principal from envelope: {error}",
        ) from error
    return f"{principal.type}:{principal.name}"
