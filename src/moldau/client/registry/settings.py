"""The configuration of a registry client, by Confluent's names.

A name may have the prefix `schema.registry.`, as in the properties of a producer; `ssl.*` with the prefix
concern the registry only and take precedence. Secrets are not shown by `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from moldau.base.errors import ErrorCode, KafkaError

PREFIX: Final = "schema.registry."
_HEADER: Final = "request.header."
BASIC_SOURCES: Final = ("URL", "USER_INFO", "SASL_INHERIT")
BEARER_SOURCES: Final = ("STATIC_TOKEN", "OAUTHBEARER", "CUSTOM")


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    urls: tuple[str, ...]
    #: User and password of basic authentication.
    user_info: tuple[str, str] | None = field(default=None, repr=False)
    #: The `bearer.auth.*` properties, without that prefix; empty without bearer authentication.
    bearer: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    #: The `ssl.*` properties.
    ssl: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    proxy: str | None = field(default=None, repr=False)
    #: Headers of all requests: the `request.header.*` properties, without that prefix.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    timeout_seconds: float = 30.0
    cache_capacity: int = 1000
    #: Time for which the latest version of a subject is cached; None: without limit.
    latest_ttl_seconds: float | None = 60.0
    max_retries: int = 3
    retries_wait_ms: int = 1000
    retries_max_wait_ms: int = 20_000

    @classmethod
    def of(cls, where: str | Mapping[str, Any] | RegistrySettings) -> RegistrySettings:
        """Read URLs (separated by commas) or properties; `KafkaError` names an invalid property."""
        if isinstance(where, RegistrySettings):
            return where
        properties = {"url": where} if isinstance(where, str) else dict(where)
        get = {
            **properties,
            **{n.removeprefix(PREFIX): v for n, v in properties.items() if n.startswith(PREFIX)},
        }
        urls, url_user = _urls(get.get("url"))
        user_info = _user_info(get, url_user)
        bearer = _bearer(get)
        if user_info is not None and bearer:
            raise _invalid("basic.auth.* and bearer.auth.* exclude each other")
        ttl = float(get.get("cache.latest.ttl.sec", get.get("latest.cache.ttl.sec", 60)))
        return cls(
            urls,
            user_info,
            bearer,
            _ssl(properties),
            _proxy(get),
            {n.removeprefix(_HEADER): str(v) for n, v in get.items() if n.startswith(_HEADER)},
            float(get.get("timeout", 30)),
            int(get.get("cache.capacity", get.get("max.schemas.per.subject", 1000))),
            None if ttl < 0 else ttl,
            int(get.get("max.retries", 3)),
            int(get.get("retries.wait.ms", 1000)),
            int(get.get("retries.max.wait.ms", 20_000)),
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _urls(value: Any) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the URLs without credentials, and the credentials of the first URL that has some."""
    texts = value.split(",") if isinstance(value, str) else list(value or ())
    urls: list[str] = []
    user: tuple[str, str] | None = None
    for text in (str(one).strip() for one in texts):
        if not text:
            continue
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _invalid(f"schema.registry.url={text}: use http:// or https:// and a host")
        if parts.username is not None:
            user = user or (unquote(parts.username), unquote(parts.password or ""))
        host = parts.netloc.rpartition("@")[2]
        urls.append(urlunsplit((parts.scheme, host, parts.path, "", "")).rstrip("/"))
    if not urls:
        raise _invalid("schema.registry.url is missing")
    return tuple(urls), user


def _user_info(get: Mapping[str, Any], of_url: tuple[str, str] | None) -> tuple[str, str] | None:
    info = get.get("basic.auth.user.info")
    source = str(get.get("basic.auth.credentials.source") or ("USER_INFO" if info else "URL")).upper()
    if source not in BASIC_SOURCES:
        raise _invalid(f"basic.auth.credentials.source={source}: use one of {', '.join(BASIC_SOURCES)}")
    if source == "URL":
        return of_url
    if source == "SASL_INHERIT":
        user, password = get.get("sasl.username"), get.get("sasl.password")
        if user is None or password is None:
            raise _invalid("basic.auth.credentials.source=SASL_INHERIT needs sasl.username and sasl.password")
        return str(user), str(password)
    user, colon, password = str(info or "").partition(":")
    if not colon:
        raise _invalid("basic.auth.user.info must be user:password")
    return user, password


def _bearer(get: Mapping[str, Any]) -> Mapping[str, Any]:
    found = {n.removeprefix("bearer.auth."): v for n, v in get.items() if n.startswith("bearer.auth.")}
    if not found:
        return {}
    source = str(found.get("credentials.source") or "STATIC_TOKEN").upper()
    needed = {
        "STATIC_TOKEN": ("token",),
        "OAUTHBEARER": ("issuer.endpoint.url", "client.id", "client.secret"),
        "CUSTOM": ("custom.provider.function",),
    }
    if source not in needed:
        raise _invalid(f"bearer.auth.credentials.source={source}: use one of {', '.join(BEARER_SOURCES)}")
    missing = [f"bearer.auth.{name}" for name in needed[source] if not found.get(name)]
    if missing:
        raise _invalid(f"bearer.auth.credentials.source={source} needs {', '.join(missing)}")
    return {**found, "credentials.source": source}


def _proxy(get: Mapping[str, Any]) -> str | None:
    """Return the URL of the proxy; Java's clients have its host and port."""
    if get.get("proxy") or not get.get("proxy.host"):
        return get.get("proxy")
    return f"http://{get['proxy.host']}:{get.get('proxy.port', 80)}"


def _ssl(properties: Mapping[str, Any]) -> Mapping[str, str]:
    def named(start: str) -> dict[str, str]:
        return {
            name.removeprefix(start): str(value)
            for name, value in properties.items()
            if name.startswith((f"{start}ssl.", f"{start}enable.ssl.")) and value is not None
        }

    return named(PREFIX) or named("")
