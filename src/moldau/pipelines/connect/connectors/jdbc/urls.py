"""JDBC URLs: `jdbc:postgresql://host:port/db?…`, `jdbc:mysql://…`, `jdbc:mariadb://…`, `jdbc:sqlite:path`.

The parameters of the URL are those of Java's drivers; each dialect uses the ones that it knows, and logs the
names of the others. Errors never contain the URL, because passwords may be part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote

from moldau.pipelines.connect.data.errors import ConfigError

URL: Final = "connection.url"
_KINDS: Final = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlite": 0}


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL names. `hosts` are tried in order; SQLite has none, its `database` is a path."""

    kind: str
    hosts: tuple[tuple[str, int], ...]
    database: str
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """The target without user, password and options."""
        if not self.hosts:
            return f"{self.kind}:{self.database}"
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{self.kind}://{hosts}/{self.database}"


def parse_url(url: str) -> Target:
    scheme, _, rest = url.partition(":")
    kind, _, rest = rest.partition(":")
    if scheme != "jdbc" or kind not in _KINDS:
        known = ", ".join(f"jdbc:{each}:" for each in _KINDS)
        raise ConfigError(f"Invalid value for configuration {URL}: it must begin with one of {known}")
    if kind == "sqlite":
        path, _, query = rest.partition("?")
        if not path:
            raise ConfigError(f"Invalid value for configuration {URL}: it names no file (jdbc:sqlite:path)")
        return Target(kind, (), path, dict(parse_qsl(query)))
    return _server(kind, rest)


def _server(kind: str, rest: str) -> Target:
    address, _, query = rest.partition("?")
    if address.startswith("//"):
        authority, _, database = address[2:].partition("/")
    else:
        # The short form of PostgreSQL: jdbc:postgresql:database
        authority, database = "localhost", address.strip("/")
    options = dict(parse_qsl(query))
    credentials, _, hosts = authority.rpartition("@")
    if credentials:
        user, _, password = credentials.partition(":")
        options.setdefault("user", unquote(user))
        if password:
            options.setdefault("password", unquote(password))
    found = tuple(_host(each, _KINDS[kind]) for each in hosts.split(",")) if hosts else ()
    return Target(kind, found or (("localhost", _KINDS[kind]),), unquote(database), options)


def _host(text: str, default: int) -> tuple[str, int]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if port and not port.isdecimal():
        raise ConfigError(f"Invalid value for configuration {URL}: the port of {host} is not a number")
    return host or "localhost", int(port) if port else default
