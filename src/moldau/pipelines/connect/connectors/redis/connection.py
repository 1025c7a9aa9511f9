"""The settings and the client that all Redis connectors share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigType,
    Importance,
    Password,
    Range,
)
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError

URI: Final = "redis.uri"
CLUSTER: Final = "redis.cluster.enabled"
USERNAME, PASSWORD = "redis.username", "redis.password"
TLS, INSECURE = "redis.tls.enabled", "redis.insecure"
CA_FILE: Final = "redis.cacert.file"
TIMEOUT: Final = "redis.timeout"


class MissingDriver(ConnectError):
    """The package `redis` is not installed."""


def define_connection(definition: ConfigDef) -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        URI,
        text,
        "redis://localhost:6379",
        high,
        "Address: redis://host:port/database, rediss:// with TLS, or unix://path.",
    )
    definition.define(CLUSTER, ConfigType.BOOLEAN, False, high, "Whether the server is a Redis Cluster.")
    definition.define(USERNAME, text, "", medium, "User of Redis' ACLs.")
    definition.define(PASSWORD, ConfigType.PASSWORD, None, medium, "Password.")
    definition.define(TLS, ConfigType.BOOLEAN, False, medium, "Use TLS, also without rediss://.")
    definition.define(INSECURE, ConfigType.BOOLEAN, False, medium, "Do not verify the server's certificate.")
    definition.define(CA_FILE, text, "", medium, "PEM file with certificates to trust.")
    definition.define(
        TIMEOUT,
        ConfigType.LONG,
        60,
        low,
        "Seconds to wait for an answer.",
        validator=Range(1),
    )
    return definition


def check_uri(uri: str) -> None:
    if not uri.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigError(
            f"Invalid value for configuration {URI}: it must begin with redis://, rediss:// or unix://"
        )


def connect(config: Mapping[str, Any]) -> Any:
    """Return a client; it connects with the first command."""
    try:
        import redis
    except ImportError as error:
        raise MissingDriver("Redis needs the package redis: pip install 'moldau[redis]'") from error
    uri = config[URI]
    check_uri(uri)
    options: dict[str, Any] = {
        "socket_timeout": config[TIMEOUT],
        "socket_connect_timeout": min(10, config[TIMEOUT]),
        "decode_responses": False,
    }
    if config[USERNAME]:
        options["username"] = config[USERNAME]
    if isinstance(config[PASSWORD], Password):
        options["password"] = config[PASSWORD].value
    if config[TLS] and uri.startswith("redis://"):
        uri = "rediss://" + uri.removeprefix("redis://")
    if uri.startswith("rediss://"):
        if config[INSECURE]:
            options |= {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
        elif config[CA_FILE]:
            options["ssl_ca_certs"] = config[CA_FILE]
    client = redis.RedisCluster if config[CLUSTER] else redis.Redis
    return client.from_url(uri, **options)


def transient_errors() -> tuple[type[Exception], ...]:
    """Return the errors after which a command can be repeated."""
    from redis import exceptions

    return (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.BusyLoadingError,
        exceptions.ReadOnlyError,
        exceptions.TryAgainError,
        exceptions.OutOfMemoryError,
    )
