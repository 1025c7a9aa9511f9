"""The entities of kafka-configs: types and names, in the long form (--entity-type) or the short (--topic).
----

Names and defaults share one list, because their order matters if users and clients are combined.
"""

from __future__ import annotations

import argparse
import socket
from typing import NamedTuple

from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together

TOPICS, CLIENTS, USERS, BROKERS, IPS = "topics", "clients", "users", "brokers", "ips"
CLIENT_METRICS, GROUPS, BROKER_LOGGERS = "client-metrics", "groups", "broker-loggers"
ENTITY_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
WITH_DEFAULTS = frozenset({USERS, CLIENTS, BROKERS, IPS})

_FLAGS = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": BROKER_LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
_DEFAULT_FLAGS = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}
#: The name of the default entity of a type.
DEFAULT = ""


class Entities(NamedTuple):
    """Types and names in the order of the command line; there may be fewer names than types."""

    types: list[str]
    names: list[str]

    @property
    def type(self) -> str:
        return self.types[0]


def add_entity_options(parser: ToolParser) -> None:
    parser.option(
        "--entity-type",
        "TYPE",
        f"Type of the entity: {', '.join(ENTITY_TYPES)}.",
        action="append",
        default=[],
    )
    parser.option(
        "--entity-name",
        "NAME",
        "Name of the entity: topic, client id, user, broker id, IP, client metrics or group.",
        action="append",
        dest="entity_names",
        default=[],
    )
    parser.add_argument(
        "--entity-default",
        action="append_const",
        const=DEFAULT,
        dest="entity_names",
        help="The default entity of clients, users, brokers or ips.",
    )
    for flag, kind in _FLAGS.items():
        parser.option(f"--{flag}", "NAME", f"Short for --entity-type {kind} --entity-name NAME.")
    for flag, kind in _DEFAULT_FLAGS.items():
        parser.flag(f"--{flag}", f"Short for --entity-type {kind} --entity-default.")


def parse_entities(options: argparse.Namespace) -> Entities:
    flags = [flag for flag in _FLAGS if given(options, flag)]
    defaults = [flag for flag in _DEFAULT_FLAGS if given(options, flag)]
    types = [
        *options.entity_type,
        *(_FLAGS[flag] for flag in flags),
        *(_DEFAULT_FLAGS[flag] for flag in defaults),
    ]
    names = [
        *options.entity_names,
        *(getattr(options, flag.replace("-", "_")) for flag in flags),
        *(DEFAULT for _ in defaults),
    ]
    _check_types(types)
    if (options.entity_type or options.entity_names) and (flags or defaults):
        raise UsageError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    entities = Entities(types, names)
    _check_names(entities)
    _check_action(options, entities)
    return entities


def _check_types(types: list[str]) -> None:
    twice = [kind for position, kind in enumerate(types) if kind in types[:position]]
    if twice:
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in types:
        if kind not in ENTITY_TYPES:
            raise UsageError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise UsageError("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")


def _check_names(entities: Entities) -> None:
    named = [name for name in entities.names if name != DEFAULT]
    if entities.type in (BROKERS, BROKER_LOGGERS):
        for name in named:
            if not name.lstrip("-").isdecimal():
                raise UsageError(
                    f"The entity name for {entities.type} must be a valid integer broker id, "
                    f"but it is: {name}"
                )
    if entities.type == IPS:
        for name in named:
            if not _resolves(name):
                raise UsageError(
                    f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}"
                )


def _resolves(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True


def _check_action(options: argparse.Namespace, entities: Entities) -> None:
    kinds, listed = set(entities.types), ",".join(entities.types)
    if options.describe:
        if DEFAULT in entities.names and not kinds & WITH_DEFAULTS:
            raise UsageError(f"--entity-default must not be specified with --describe of {listed}")
        if BROKER_LOGGERS in kinds and not entities.names:
            raise UsageError(f"An entity name must be specified with --describe of {listed}")
        return
    if kinds & WITH_DEFAULTS:
        if not entities.names:
            raise UsageError(
                "An entity-name or default entity must be specified with --alter of "
                "users, clients, brokers or ips"
            )
    elif not any(entities.names):
        raise UsageError(f"An entity name must be specified with --alter of {listed}")
    if not any(given(options, name) for name in ("add-config", "add-config-file", "delete-config")):
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config "
            "must be specified with --alter"
        )
    refuse_together(options, "add-config-file", ["add-config"])
    if len(entities.names) != len(entities.types):
        raise UsageError("An entity name must be specified for every entity type")
