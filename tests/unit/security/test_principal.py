"""Principals: their text, and their bytes in Envelopes."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.security.principal import (
    KafkaPrincipal,
    decode_principal,
    encode_principal,
    parse_principal,
)


def test_a_principal_is_a_type_and_a_name() -> None:
    assert parse_principal("User:CN=a:b") == KafkaPrincipal("User", "CN=a:b")
    assert str(KafkaPrincipal("User", "alice", token_authenticated=True)) == "User:alice"
    for text in ("alice", ":alice"):
        with pytest.raises(ValueError, match="principalType:principalName"):
            parse_principal(text)


@pytest.mark.parametrize("with_token", [False, True])
def test_the_envelope_has_the_bytes_of_kafkas_principal_builder(with_token: bool) -> None:
    principal = KafkaPrincipal("User", "alice", token_authenticated=with_token)
    # The version, two compact strings, whether the client logged in with a token, and no tagged fields.
    data = b"\0\0" + b"\x05User" + b"\x06alice" + bytes([with_token]) + b"\0"
    assert encode_principal(principal) == data
    assert decode_principal(data) == principal


@pytest.mark.parametrize("data", [None, b"", b"\0\1\x05User\x06alice\0\0", b"\0\0\x05Us"])
def test_other_bytes_are_refused(data: bytes | None) -> None:
    with pytest.raises(KafkaError) as refused:
        decode_principal(data)
    assert refused.value.code is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
