"""SCRAM users of a new cluster: the argument of `kafka-storage format --add-scram` (KIP-900).

    SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=8192,salt=N3E=]
    SCRAM-SHA-512=[name=alice,salt="N3E=",saltedpassword="YCE="]

A password cannot contain a comma, as in Kafka. Error messages do not contain passwords.
"""

from __future__ import annotations

import base64
import binascii

from moldau.base.ids import Randomness
from moldau.protocol.stored.metadata import UserScramCredentialRecord
from moldau.security.sasl.mechanism import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_TYPES
from moldau.security.sasl.scram import (
    credential_of,
    random_salt,
    salted_password,
)
from moldau.server.startup.format_features import FormatError


def scram_record(argument: str, randomness: Randomness) -> UserScramCredentialRecord:
    """Return the record of a credential; `FormatError` if the argument is invalid."""
    mechanism, settings = _split_mechanism(argument.strip())
    parts = dict(map(_split_setting, settings.rstrip(",").split(",")))
    name = parts.pop("name", None)
    if name is None:
        raise FormatError("You must supply 'name' to add-scram")
    given_salt = _decoded("salt", parts.pop("salt", None))
    iterations = _number(parts.pop("iterations", str(MIN_ITERATIONS)))
    password, salted = (
        parts.pop("password", None),
        _decoded("saltedPassword", parts.pop("saltedpassword", None)),
    )
    if password is None:
        _check_salted_password(salted, given_salt)
    if parts:
        raise FormatError(f"Unknown SCRAM configurations: {', '.join(sorted(parts))}")
    _check_iterations(mechanism, iterations)
    salt = random_salt(randomness) if given_salt is None else given_salt
    if password is not None:
        salted = salted_password(mechanism, password, salt, iterations)
    credential = credential_of(mechanism, salted or b"", iterations, salt)
    return UserScramCredentialRecord(
        name=name,
        mechanism=SCRAM_TYPES[mechanism],
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def _split_mechanism(argument: str) -> tuple[str, str]:
    mechanism, equals, settings = argument.partition("=")
    if not equals:
        raise FormatError("Failed to find equals sign in SCRAM argument")
    if mechanism not in SCRAM_TYPES:
        raise FormatError(f"The add-scram mechanism {mechanism} is not supported.")
    if not settings.startswith("["):
        raise FormatError("Expected configuration string to start with [")
    if not settings.endswith("]"):
        raise FormatError("Expected configuration string to end with ]")
    return mechanism, settings[1:-1]


def _split_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise FormatError("No equals sign found in a SCRAM component")
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return name, value


def _decoded(name: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        # As Java does, accept text without padding.
        return base64.b64decode(text if "=" in text else text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise FormatError(f"Failed to decode given {name}: it is not base64") from None


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"Failed to parse iterations count: {text}") from None


def _check_iterations(mechanism: str, iterations: int) -> None:
    # Kafka prints the names of its constants.
    shown = mechanism.replace("-", "_")
    if iterations < MIN_ITERATIONS:
        raise FormatError(f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {shown}")
    if iterations > MAX_ITERATIONS:
        raise FormatError(f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {shown}")


def _check_salted_password(salted: bytes | None, salt: bytes | None) -> None:
    if salted is None:
        raise FormatError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if salt is None:
        raise FormatError("You must supply 'salt' with 'saltedpassword' to add-scram")
