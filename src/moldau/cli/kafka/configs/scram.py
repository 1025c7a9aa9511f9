"""SCRAM credentials of users for kafka-configs: `SCRAM-SHA-512=[iterations=8192,password=…]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.shared.arguments import UsageError

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.scram import UserScramCredentialUpsertion

MECHANISMS = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
_MIN_ITERATIONS = 4096


def alter(admin: AdminClient, user: str, add: Mapping[str, str], delete: Sequence[str]) -> None:
    from moldau.client.admin.scram import ScramMechanism, UserScramCredentialDeletion

    deletions = [
        UserScramCredentialDeletion(user, ScramMechanism.from_mechanism_name(name)) for name in delete
    ]
    upsertions = [_upsertion(user, name, text) for name, text in add.items()]
    for error in admin.alter_user_scram_credentials([*deletions, *upsertions]).values():
        if error is not None:
            raise error


def _upsertion(user: str, name: str, text: str) -> UserScramCredentialUpsertion:
    from moldau.client.admin.scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    match = re.fullmatch(r"(?:iterations=(-?[0-9]+),)?password=(.*)", text)
    if match is None:
        raise UsageError(f"Invalid credential property {name}: expected [iterations=8192,password=...]")
    iterations = int(match[1] or -1)
    if iterations == -1:
        iterations = _MIN_ITERATIONS
    if iterations < _MIN_ITERATIONS:
        raise UsageError(
            f"Iterations {iterations} is less than the minimum {_MIN_ITERATIONS} required for {name}"
        )
    info = ScramCredentialInfo(ScramMechanism.from_mechanism_name(name), iterations)
    return UserScramCredentialUpsertion(user, info, match[2])


def describe(admin: AdminClient, users: Sequence[str]) -> None:
    for user, described in admin.describe_user_scram_credentials(users).items():
        if isinstance(described, KafkaError):
            print(f"Error retrieving SCRAM credential configs for user-principal '{user}': {described}")
            continue
        listed = ", ".join(
            f"{info.mechanism.mechanism_name}=iterations={info.iterations}"
            for info in described.credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{user}' are {listed}")
