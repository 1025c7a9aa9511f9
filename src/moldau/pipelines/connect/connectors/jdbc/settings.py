"""The settings that source and sink share: the connection, the dialect and the time zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Password,
    Range,
    ValidString,
    Width,
)
from moldau.pipelines.connect.connectors.jdbc.dialects.catalog import (
    DIALECT_NAMES,
    create_dialect,
    time_zone,
)
from moldau.pipelines.connect.connectors.jdbc.dialects.interface import Dialect
from moldau.pipelines.connect.connectors.jdbc.urls import URL, Target, parse_url
from moldau.pipelines.connect.data.errors import ConfigError

USER: Final = "connection.user"
PASSWORD: Final = "connection.password"
ATTEMPTS: Final = "connection.attempts"
BACKOFF: Final = "connection.backoff.ms"
DIALECT: Final = "dialect.name"
DB_TIMEZONE: Final = "db.timezone"
QUOTE: Final = "quote.sql.identifiers"
_GROUP: Final = "Database"


@dataclass(frozen=True, slots=True)
class TimeZoneName:
    def __call__(self, name: str, value: Any) -> None:
        time_zone(name, value)

    def __str__(self) -> str:
        return "a time zone"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Where and how to connect."""

    target: Target
    user: str | None
    password: str | None = field(repr=False)
    attempts: int
    backoff_s: float
    dialect_name: str
    zone: str
    quoted: bool

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ConnectionSettings:
        password = config[PASSWORD]
        return cls(
            target=parse_url(config[URL]),
            user=config[USER] or None,
            password=password.value if isinstance(password, Password) else None,
            attempts=config[ATTEMPTS],
            backoff_s=config[BACKOFF] / 1000,
            dialect_name=config[DIALECT],
            zone=config[DB_TIMEZONE],
            quoted=config[QUOTE].lower() == "always",
        )

    def dialect(self) -> Dialect:
        zone = time_zone(DB_TIMEZONE, self.zone)
        return create_dialect(self.target.kind, self.dialect_name, quoted=self.quoted, zone=zone)


def define_connection(definition: ConfigDef) -> ConfigDef:
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    return (
        definition.define(
            URL,
            ConfigType.STRING,
            NO_DEFAULT,
            high,
            "JDBC URL of the database: jdbc:postgresql://host:5432/db, jdbc:mysql://host:3306/db, "
            "jdbc:mariadb://host:3306/db or jdbc:sqlite:path.",
            **_shown(1, Width.LONG, "JDBC URL"),
        )
        .define(USER, ConfigType.STRING, None, high, "User.", **_shown(2, Width.MEDIUM, "JDBC User"))
        .define(
            PASSWORD,
            ConfigType.PASSWORD,
            None,
            high,
            "Password.",
            **_shown(3, Width.SHORT, "JDBC Password"),
        )
        .define(
            ATTEMPTS,
            ConfigType.INT,
            3,
            low,
            "Maximum number of attempts to connect.",
            validator=Range(1),
            **_shown(4, Width.SHORT, "JDBC connection attempts"),
        )
        .define(
            BACKOFF,
            ConfigType.LONG,
            10_000,
            low,
            "Milliseconds between attempts to connect.",
            validator=Range(0),
            **_shown(5, Width.SHORT, "JDBC connection backoff in milliseconds"),
        )
        .define(
            DIALECT,
            ConfigType.STRING,
            "",
            low,
            "Name of the dialect to use instead of the one for the URL.",
            validator=ValidString(DIALECT_NAMES),
            **_shown(6, Width.LONG, "Database Dialect"),
        )
        .define(
            DB_TIMEZONE,
            ConfigType.STRING,
            "UTC",
            medium,
            "Time zone of the database's dates and times without a time zone.",
            validator=TimeZoneName(),
            **_shown(7, Width.MEDIUM, "DB time zone"),
        )
        .define(
            QUOTE,
            ConfigType.STRING,
            "always",
            medium,
            "Whether to quote identifiers in statements: always or never. Without quotes, the database "
            "decides about their case.",
            validator=ValidString(("always", "never"), ignore_case=True),
            **_shown(8, Width.MEDIUM, "Quote Identifiers"),
        )
    )


def check_connection(values: Mapping[str, ConfigValue]) -> None:
    """Add the errors of the URL, which name no part of it that may be secret."""
    url = values[URL]
    if url.value and not url.errors:
        try:
            parse_url(url.value)
        except ConfigError as error:
            url.errors.append(str(error))


def _shown(order: int, width: Width, name: str) -> dict[str, Any]:
    return {"group": _GROUP, "order_in_group": order, "width": width, "display_name": name}
