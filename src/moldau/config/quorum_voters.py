"""Parsing the voters of the metadata quorum.

Static voters are `id@host:port` in `controller.quorum.voters`; the initial voters of a dynamic quorum
(KIP-853) are `id@host:port:directory` on the command line of `kafka-storage format`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from moldau.base.ids import DirectoryId, format_uuid, parse_uuid
from moldau.config.definition import ConfigError, ConfigValue
from moldau.config.listeners import format_address

_HOST_AND_PORT = r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)]?:([0-9]+)"


class Voter(NamedTuple):
    """A voter of a static quorum."""

    node_id: int
    host: str
    port: int


class DynamicVoter(NamedTuple):
    """A voter of a dynamic quorum: a node and the directory of its metadata log."""

    node_id: int
    directory_id: DirectoryId
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.node_id}@{format_address(self.host, self.port)}:{format_uuid(self.directory_id)}"


class HostPort(NamedTuple):
    host: str
    port: int


def parse_servers(setting: str, texts: Iterable[str]) -> tuple[HostPort, ...]:
    """Parse `host:port` entries."""
    return tuple(_parse_address(setting, text, text, "{host}:{port}") for text in texts)


def _parse_address(setting: str, entry: str, address: str, form: str) -> HostPort:
    match = re.fullmatch(_HOST_AND_PORT, address)
    if match is None:
        raise ConfigError(f"{setting} has the entry '{entry}'; each entry must have the form {form}.")
    port = int(match[2])
    if port > 65535:
        raise ConfigError(f"{setting} has the entry '{entry}'; a port is a number from 0 to 65535.")
    return HostPort(match[1], port)


def parse_voters(setting: str, texts: Iterable[str]) -> tuple[Voter, ...]:
    """Parse `id@host:port` entries; of two with the same id the later one is used."""
    form = "{id}@{host}:{port}"
    voters = {}
    for text in texts:
        identity, at, address = text.partition("@")
        if not at or not re.fullmatch(r"[+-]?\d{1,10}", identity):
            raise ConfigError(f"{setting} has the entry '{text}'; each entry must have the form {form}.")
        voters[int(identity)] = Voter(int(identity), *_parse_address(setting, text, address, form))
    return tuple(voters.values())


def parse_dynamic_voters(text: str) -> tuple[DynamicVoter, ...]:
    """Parse `id@host:port:directory,...`, sorted by id; `ConfigError` if an entry is invalid."""
    voters: dict[int, DynamicVoter] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        voter = _parse_dynamic_voter(entry)
        if voter.node_id in voters:
            raise ConfigError(f"Node id {voter.node_id} was specified more than once.")
        voters[voter.node_id] = voter
    if not voters:
        raise ConfigError("No voters given.")
    return tuple(voters[node_id] for node_id in sorted(voters))


_DYNAMIC_VOTER = r"(\d{1,10})@(?:\[([^\]]+)\]|([^:\[\]]+)):(\d+):(.+)"


def _parse_dynamic_voter(text: str) -> DynamicVoter:
    match = re.fullmatch(_DYNAMIC_VOTER, text)
    if match is None or int(match[4]) > 65535:
        raise ConfigError(
            f"The voter '{text}' is invalid; a voter has the form id@host:port:directory, "
            "for example 1@example.com:9093:JEXY6aqzQY-32P5TStzaFg."
        )
    try:
        directory = parse_uuid(match[5])
    except ValueError as error:
        raise ConfigError(f"The voter '{text}' has no valid directory id: {error}.") from error
    return DynamicVoter(int(match[1]), directory, match[2] or match[3], int(match[4]))


class VoterList:
    """Validates `controller.quorum.voters`."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        parse_voters(name, value if isinstance(value, tuple) else ())

    def __str__(self) -> str:
        return "non-empty list"


class ServerList:
    """Validates `controller.quorum.bootstrap.servers`."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        parse_servers(name, value if isinstance(value, tuple) else ())

    def __str__(self) -> str:
        return "non-empty list"
