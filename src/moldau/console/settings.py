"""The settings of the console.

| setting | default | meaning |
|---|---|---|
| `bootstrap.servers` | | the brokers of the first cluster |
| `client.*` | | properties of Kafka clients for it: `client.security.protocol`, … |
| `cluster.name` | `default` | its name |
| `cluster.NAME.*` | | a further cluster: `cluster.prod.bootstrap.servers`, `cluster.prod.sasl.mechanism`, … |
| `read.only` | false | refuse all changes |
| `login` | auto | `scram`: users sign in with SCRAM credentials of the first cluster; `none`; `auto` |
| `session.timeout.ms` | 3600000 | end a session that is not used for this time |
| `schema.registry.url`, `schema.registry.*` | | the schema registry, with Confluent's names |
| `connect.url` | | the REST API of Connect |
| `pipelines.folder` | | the state of pipelines on this machine |
| `sql.enabled` | false | run SQL over topics with Spark, as `moldau sql` does |
| `masking.fields` | | hidden fields of structured values, separated by commas; `*`: any text |
| `allowed.hosts` | | further names by which browsers reach the console |
| `audit.file` | | append a line of JSON for every change |
| `lag.window.seconds` | 120 | the time over which lag is judged, 1 to 3600 |
| `alert.webhook` | | send a POST to this URL when the status of a group changes |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.settings import ClientSettings
from moldau.config.definition import ConfigError, invalid_value
from moldau.http.settings import HttpSettings, boolean, integer

DEFAULT_PORT: Final = 8080
DEFAULT_LAG_WINDOW_S: Final = 120.0
#: A history has a commit for every other second of the window.
_MOST_LAG_WINDOW_S: Final = 3600.0
_LOGINS: Final = ("auto", "none", "scram")
_CLIENT: Final = "client."
_CLUSTER: Final = "cluster."
_REGISTRY: Final = "schema.registry."


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    #: Properties of Kafka clients by the name of the cluster; the first one is the default.
    clusters: Mapping[str, Mapping[str, str]] = field(repr=False)
    read_only: bool = False
    login: bool = False
    session_timeout_ms: int = 3_600_000
    registry: Mapping[str, str] | None = field(default=None, repr=False)
    connect_url: str | None = None
    pipelines_folder: str | None = None
    sql: bool = False
    masked: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()
    #: Whether only this machine can connect.
    loopback: bool = True
    audit_file: str | None = None
    lag_window_s: float = DEFAULT_LAG_WINDOW_S
    alert_webhook: str | None = None
    max_request_bytes: int = 10 * 1024 * 1024

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ConsoleSettings:
        """Read the settings; `KafkaError` names an invalid one."""
        http = HttpSettings.from_properties(properties, default_port=DEFAULT_PORT)
        clusters = _clusters(properties)
        loopback = all(is_loopback(each.host) for each in http.listeners)
        login = _login(properties, clusters)
        if not loopback and not login:
            raise ConfigError(
                "Without login the console listens on this machine only (127.0.0.1): on another address, "
                "everybody could use it. Give --command-config with security.protocol=SASL_SSL and "
                "sasl.mechanism=SCRAM-SHA-512, so that users sign in with their SCRAM credentials."
            )
        return cls(
            clusters=clusters,
            read_only=boolean(properties, "read.only", False),
            login=login,
            session_timeout_ms=integer(properties, "session.timeout.ms", 3_600_000),
            registry=_registry(properties),
            connect_url=(properties.get("connect.url") or "").rstrip("/") or None,
            pipelines_folder=properties.get("pipelines.folder") or None,
            sql=boolean(properties, "sql.enabled", False),
            masked=_names(properties, "masking.fields"),
            hosts=frozenset(
                each.lower()
                for each in (
                    "localhost",
                    *(listener.host for listener in http.listeners),
                    *_names(properties, "allowed.hosts"),
                )
            ),
            loopback=loopback,
            audit_file=properties.get("audit.file") or None,
            lag_window_s=_lag_window(properties),
            alert_webhook=_alert_webhook(properties, login=login),
            max_request_bytes=http.max_request_bytes,
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def user_settings(properties: Mapping[str, str], user: str, password: str) -> ClientSettings:
    """Return the connection settings of a user who has signed in."""
    given = {
        name: value
        for name, value in properties.items()
        if name not in ("sasl.jaas.config", "sasl.username", "sasl.password")
    }
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    given["sasl.jaas.config"] = (
        f'{module} required username="{_quoted(user)}" password="{_quoted(password)}";'
    )
    return ClientSettings.from_properties(given)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _clusters(properties: Mapping[str, str]) -> dict[str, dict[str, str]]:
    first = properties.get("cluster.name") or "default"
    found: dict[str, dict[str, str]] = {}
    if properties.get("bootstrap.servers"):
        found[first] = {
            name.removeprefix(_CLIENT): value
            for name, value in properties.items()
            if name.startswith(_CLIENT)
        }
        found[first]["bootstrap.servers"] = properties["bootstrap.servers"]
    for name, value in properties.items():
        if name.startswith(_CLUSTER) and name != "cluster.name":
            cluster, _, rest = name.removeprefix(_CLUSTER).partition(".")
            if not rest or not cluster.replace("-", "").replace("_", "").isalnum():
                raise ConfigError(
                    f"{name}: a further cluster is cluster.NAME.bootstrap.servers; NAME has letters, digits, "
                    "- and _"
                )
            found.setdefault(cluster, {})[rest] = value
    if not found:
        raise ConfigError("No cluster is configured: give --bootstrap-server")
    for name, client in found.items():
        if not client.get("bootstrap.servers"):
            raise ConfigError(f"cluster.{name}.bootstrap.servers is missing")
    return found


def _login(properties: Mapping[str, str], clusters: Mapping[str, Mapping[str, str]]) -> bool:
    choice = properties.get("login", "auto").strip().lower() or "auto"
    if choice not in _LOGINS:
        raise invalid_value("login", choice, f"String must be one of: {', '.join(_LOGINS)}")
    first = next(iter(clusters.values()))
    scram = str(first.get("security.protocol", "")).upper().startswith("SASL_") and str(
        first.get("sasl.mechanism", "")
    ).upper().startswith("SCRAM-")
    if choice == "scram" and not scram:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "login=scram needs a cluster with SCRAM: security.protocol is SASL_SSL or SASL_PLAINTEXT, and "
            "sasl.mechanism SCRAM-SHA-256 or SCRAM-SHA-512.",
        )
    return scram and choice != "none"


def _registry(properties: Mapping[str, str]) -> dict[str, str] | None:
    found = {name: value for name, value in properties.items() if name.startswith(_REGISTRY) and value}
    return found if "schema.registry.url" in found else None


def _lag_window(properties: Mapping[str, str]) -> float:
    given = properties.get("lag.window.seconds") or str(DEFAULT_LAG_WINDOW_S)
    try:
        window_s = float(given)
    except ValueError:
        raise invalid_value("lag.window.seconds", given, "Not a number of seconds") from None
    if not 1 <= window_s <= _MOST_LAG_WINDOW_S:
        raise invalid_value("lag.window.seconds", given, f"Value must be from 1 to {_MOST_LAG_WINDOW_S:.0f}")
    return window_s


def _alert_webhook(properties: Mapping[str, str], *, login: bool) -> str | None:
    url = properties.get("alert.webhook") or None
    if url is None:
        return None
    if not url.startswith(("http://", "https://")):
        raise invalid_value("alert.webhook", url, "Not an http or https URL")
    if login:
        raise ConfigError(
            "alert.webhook: with a login the console reads a cluster for the users who have signed in only. "
            "Send alerts with moldau lag --alert-webhook, which has its own credentials."
        )
    return url


def _names(properties: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, properties.get(name, "").split(","))))
