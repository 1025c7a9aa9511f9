"""Quotas of users, clients and IPs for kafka-configs; `scram` has the credentials of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.cli.kafka.configs import scram
from moldau.cli.kafka.configs.entities import CLIENTS, DEFAULT, IPS, USERS, Entities
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.java import java_double

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.quotas import QuotaEntity

CLIENT_QUOTAS = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
IP_QUOTAS = frozenset({"connection_creation_rate"})

#: Names of entity types in the protocol, and their names in the output.
_KINDS = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
_WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


def alter_ip(admin: AdminClient, entities: Entities, add: Mapping[str, str], delete: Sequence[str]) -> None:
    unknown = [name for name in (*add, *delete) if name not in IP_QUOTAS]
    if unknown:
        raise UsageError(
            "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
            f"Unexpected config names: {','.join(unknown)}"
        )
    _alter_quotas(admin, entities, add, delete)


def alter_user_or_client(
    admin: AdminClient, entities: Entities, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    _check_names(entities, list(add), "added")
    _check_names(entities, list(delete), "deleted")
    if not any(name in scram.MECHANISMS for name in (*add, *delete)):
        _alter_quotas(admin, entities, add, delete)
        return
    if DEFAULT in entities.names:
        raise UsageError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials "
            "using --bootstrap-server."
        )
    if any(name in CLIENT_QUOTAS for name in (*add, *delete)):
        raise UsageError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' "
            "using --bootstrap-server."
        )
    scram.alter(admin, entities.names[0], add, delete)


def _check_names(entities: Entities, names: Sequence[str], verb: str) -> None:
    client = CLIENTS in entities.types
    allowed = CLIENT_QUOTAS if client else CLIENT_QUOTAS | scram.MECHANISMS
    unknown = [name for name in names if name not in allowed]
    if unknown:
        what, kind = ("quota", CLIENTS) if client else ("quota and SCRAM credential", USERS)
        raise UsageError(
            f"Only {what} configs can be {verb} for '{kind}' using --bootstrap-server. "
            f"Unexpected config names: {', '.join(unknown)}"
        )


def _alter_quotas(
    admin: AdminClient, entities: Entities, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    values: dict[str, float | None] = {name: _quota(name, text) for name, text in add.items()}
    existing = next(iter(_describe(admin, entities).values()), {})
    missing = [name for name in delete if name not in existing]
    if missing:
        raise UsageError(f"Invalid config(s): {','.join(missing)}")
    entity = tuple(
        (_KINDS[kind], None if name == DEFAULT else name)
        for kind, name in zip(entities.types, entities.names, strict=True)
    )
    admin.alter_client_quotas(entity, {**values, **dict.fromkeys(delete)})


def _quota(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"Cannot parse quota configuration value for {name}: {text}") from None


def describe(admin: AdminClient, entities: Entities) -> None:
    """Print quotas, and SCRAM credentials if the entities are users only."""
    for entity, values in _describe(admin, entities).items():
        parts = dict(entity)
        words = [
            f"{word} '{parts[kind]}'" if parts[kind] is not None else f"the default {word}"
            for kind, word in _WORDS.items()
            if kind in parts
        ]
        listed = ", ".join(f"{name}={java_double(value)}" for name, value in values.items())
        print(f"Quota configs for {', '.join(words)} are {listed}")
    if entities.types == [USERS] and DEFAULT not in entities.names:
        scram.describe(admin, entities.names)


def _describe(admin: AdminClient, entities: Entities) -> dict[QuotaEntity, dict[str, float]]:
    from moldau.client.admin.quotas import MatchType, QuotaFilter

    if len(entities.names) > len(entities.types):
        raise UsageError("More entity names specified than entity types")
    filters = []
    for position, kind in enumerate(entities.types):
        if position >= len(entities.names):
            filters.append(QuotaFilter(_KINDS[kind], MatchType.ANY))
        elif entities.names[position] == DEFAULT:
            filters.append(QuotaFilter(_KINDS[kind], MatchType.DEFAULT))
        else:
            filters.append(QuotaFilter(_KINDS[kind], MatchType.EXACT, entities.names[position]))
    return admin.describe_client_quotas(filters)
