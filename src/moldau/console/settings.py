"""The settings of the console.

| setting | default | meaning |
|---|---|---|
| `bootstrap.servers` | | the brokers of the first cluster |
| `client.*` | | properties of Kafka clients for it: `client.security.protocol`, … |
| `cluster.name` | `default` | its name |
| `cluster.NAME.*` | | a further cluster: `cluster.prod.bootstrap.servers`, `cluster.prod.sasl.mechanism`, … |
| `read.only` | false | refuse all changes |
| `login` | auto | `scram`, `oidc`, `none`, or `auto`: SCRAM if the first cluster requires it |
| `oidc.*` | | the login with OpenID Connect, see `login.settings` |
| `session.timeout.ms` | 3600000 | end a session that is not used for this time |
| `session.lifetime.ms` | 43200000 | end a session after this time |
| `schema.registry.url`, `schema.registry.*` | | the schema registry, with Confluent's names |
| `connect.url` | | the REST API of Connect |
| `pipelines.folder` | | the state of pipelines on this machine |
| `cluster.NAME.schema.registry.url`, … | | the same for a further cluster; those above are of the first |
| `sql.enabled` | false | run SQL over topics with Spark, as `moldau sql` does |
| `masking.fields` | | hidden fields, separated by commas, `TOPIC:FIELD` of some topics; `*`: any text |
| `allowed.hosts` | | further names by which browsers reach the console |
| `audit.file` | | append a line of JSON for every change |
| `lag.window.seconds` | 120 | the time over which lag is judged, 1 to 3600 |
| `alert.webhook` | | send a POST to this URL when the status of a group changes |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from moldau.config.definition import ConfigError, invalid_value
from moldau.console.login.settings import OidcSettings
from moldau.http.settings import HttpSettings, boolean, integer

DEFAULT_PORT: Final = 8080
DEFAULT_LAG_WINDOW_S: Final = 120.0
#: A history has a commit for every other second of the window.
_MAX_LAG_WINDOW_S: Final = 3600.0
_CLIENT: Final = "client."
_CLUSTER: Final = "cluster."
_REGISTRY: Final = "schema.registry."
_SERVICES: Final = (_REGISTRY, "connect.url", "pipelines.folder")


class Login(StrEnum):
    SCRAM = "scram"
    OIDC = "oidc"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The services beside a cluster."""

    registry: Mapping[str, str] | None = field(default=None, repr=False)
    connect_url: str | None = None
    pipelines_folder: str | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ServiceSettings:
        registry = {name: each for name, each in properties.items() if name.startswith(_REGISTRY) and each}
        return cls(
            registry=registry if f"{_REGISTRY}url" in registry else None,
            connect_url=(properties.get("connect.url") or "").rstrip("/") or None,
            pipelines_folder=properties.get("pipelines.folder") or None,
        )


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    #: Properties of Kafka clients by the name of the cluster; the first one is the default.
    clusters: Mapping[str, Mapping[str, str]] = field(repr=False)
    #: By the name of the cluster, for each.
    services: Mapping[str, ServiceSettings] = field(default_factory=dict)
    read_only: bool = False
    #: How users sign in; None: without login.
    login: Login | None = None
    oidc: OidcSettings | None = None
    session_timeout_ms: int = 3_600_000
    session_lifetime_ms: int = 43_200_000
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
        clusters, services = _clusters(properties)
        loopback = all(is_loopback(each.host) for each in http.listeners)
        login = _login(properties, clusters)
        if not loopback and login is None:
            raise ConfigError(
                "Without login the console listens on this machine only (127.0.0.1): on another address, "
                "everybody could use it. Give --command-config with security.protocol=SASL_SSL and "
                "sasl.mechanism=SCRAM-SHA-512, so that users sign in with their SCRAM credentials, or set "
                "login=oidc and oidc.issuer.url, so that they sign in with OpenID Connect."
            )
        oidc = OidcSettings.from_properties(properties) if login is Login.OIDC else None
        return cls(
            clusters=clusters,
            services=services,
            read_only=boolean(properties, "read.only", False),
            login=login,
            oidc=oidc,
            session_timeout_ms=integer(properties, "session.timeout.ms", 3_600_000),
            session_lifetime_ms=integer(properties, "session.lifetime.ms", 43_200_000),
            sql=boolean(properties, "sql.enabled", False),
            masked=_names(properties, "masking.fields"),
            hosts=frozenset(
                each.lower()
                for each in (
                    "localhost",
                    *(listener.host for listener in http.listeners),
                    *_names(properties, "allowed.hosts"),
                    *(() if oidc is None or not oidc.redirect_host else (oidc.redirect_host,)),
                )
            ),
            loopback=loopback,
            audit_file=properties.get("audit.file") or None,
            lag_window_s=_lag_window(properties),
            alert_webhook=_alert_webhook(properties, login=login is Login.SCRAM),
            max_request_bytes=http.max_request_bytes,
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _clusters(
    properties: Mapping[str, str],
) -> tuple[dict[str, dict[str, str]], dict[str, ServiceSettings]]:
    """Return the clients' properties and the services of each cluster, by its name."""
    first = properties.get("cluster.name") or "default"
    found: dict[str, dict[str, str]] = {}
    services: dict[str, dict[str, str]] = {}
    if properties.get("bootstrap.servers"):
        found[first] = {
            name.removeprefix(_CLIENT): value
            for name, value in properties.items()
            if name.startswith(_CLIENT)
        }
        found[first]["bootstrap.servers"] = properties["bootstrap.servers"]
        services[first] = {name: value for name, value in properties.items() if name.startswith(_SERVICES)}
    for name, value in properties.items():
        if name.startswith(_CLUSTER) and name != "cluster.name":
            cluster, _, rest = name.removeprefix(_CLUSTER).partition(".")
            if not rest or not cluster.replace("-", "").replace("_", "").isalnum():
                raise ConfigError(
                    f"{name}: a further cluster is cluster.NAME.bootstrap.servers; NAME has letters, digits, "
                    "- and _"
                )
            group = services if rest.startswith(_SERVICES) else found
            group.setdefault(cluster, {})[rest] = value
    if not found:
        raise ConfigError("No cluster is configured: give --bootstrap-server")
    for name in found | services:
        if not found.get(name, {}).get("bootstrap.servers"):
            raise ConfigError(f"cluster.{name}.bootstrap.servers is missing")
    return found, {name: ServiceSettings.from_properties(services.get(name, {})) for name in found}


def _login(properties: Mapping[str, str], clusters: Mapping[str, Mapping[str, str]]) -> Login | None:
    choice = properties.get("login", "auto").strip().lower() or "auto"
    if choice not in ("auto", "none", *Login):
        raise invalid_value("login", choice, f"String must be one of: auto, none, {', '.join(Login)}")
    if choice == "auto":
        choice = Login.SCRAM if _uses_scram(next(iter(clusters.values()))) else "none"
    login = None if choice == "none" else Login(choice)
    if login is Login.SCRAM:
        others = [name for name, each in clusters.items() if not _uses_scram(each)]
        if others:
            raise ConfigError(
                f"login=scram: users sign in at each cluster, but {', '.join(others)} has no SCRAM, so that "
                "all users would have the console's own permissions there. Set security.protocol to SASL_SSL "
                "or SASL_PLAINTEXT and sasl.mechanism to SCRAM-SHA-256 or SCRAM-SHA-512, use login=oidc, "
                "whose roles hold for all clusters, or start another console for this cluster."
            )
    return login


def _uses_scram(properties: Mapping[str, str]) -> bool:
    protocol = str(properties.get("security.protocol", "")).strip().upper()
    mechanism = str(properties.get("sasl.mechanism", "")).strip().upper()
    return protocol.startswith("SASL_") and mechanism.startswith("SCRAM-")


def _lag_window(properties: Mapping[str, str]) -> float:
    given = properties.get("lag.window.seconds") or str(DEFAULT_LAG_WINDOW_S)
    try:
        window_s = float(given)
    except ValueError:
        raise invalid_value("lag.window.seconds", given, "Not a number of seconds") from None
    if not 1 <= window_s <= _MAX_LAG_WINDOW_S:
        raise invalid_value("lag.window.seconds", given, f"Value must be from 1 to {_MAX_LAG_WINDOW_S:.0f}")
    return window_s


def _alert_webhook(properties: Mapping[str, str], *, login: bool) -> str | None:
    url = properties.get("alert.webhook") or None
    if url is None:
        return None
    if not url.startswith(("http://", "https://")):
        raise invalid_value("alert.webhook", url, "Not an http or https URL")
    if login:
        raise ConfigError(
            "alert.webhook: with login=scram the console reads a cluster only for users who have signed in. "
            "Send alerts with moldau lag --alert-webhook, which has its own credentials."
        )
    return url


def _names(properties: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, properties.get(name, "").split(","))))
