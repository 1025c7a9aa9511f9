"""The settings of the login with OpenID Connect.

| setting | default | meaning |
|---|---|---|
| `oidc.issuer.url` | | the identity provider; its discovery document is `URL/.well-known/openid-configuration` |
| `oidc.client.id` | | the console's client id at the provider |
| `oidc.client.secret` | | its secret, also as `${env:NAME}`; without one, PKCE alone protects the exchange |
| `oidc.client.secret.file` | | a file with the secret |
| `oidc.scopes` | `openid profile email` | the scopes to request |
| `oidc.user.claim` | `preferred_username` | the claim with the user's name; `sub` if the token lacks it |
| `oidc.roles.claim` | `roles` | the claim with the user's roles or groups, or its path: `realm_access.roles` |
| `oidc.role.viewer`, `oidc.role.editor`, `oidc.role.admin` | the role's name | values of the claim that grant the role, separated by commas; `*`: every user |
| `oidc.expected.audience` | | audiences of access tokens that scripts send, separated by commas; without one, none are accepted |
| `oidc.redirect.base.url` | the URL of the request | the console's URL for browsers, as registered at the provider; required behind a proxy with https |
| `oidc.ssl.truststore.*` | | the trust store for the provider's certificate; default: the system's |
"""  # noqa: E501 (rows of the table)

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moldau.config.definition import ConfigError, invalid_value
from moldau.console.login.roles import Role, RoleRules

if TYPE_CHECKING:
    from ssl import SSLContext

_PREFIX: Final = "oidc."
_SCOPE: Final = "openid"
_VARIABLE: Final = re.compile(r"\$\{env:([^}:]+)\}")
LOGIN: Final = "/login"
CALLBACK: Final = f"{LOGIN}/callback"


@dataclass(frozen=True, slots=True)
class OidcSettings:
    issuer: str
    client_id: str
    #: Empty: a public client.
    client_secret: str = field(repr=False)
    scopes: str
    user_claim: str
    rules: RoleRules
    #: Of access tokens that scripts send; empty: none are accepted.
    expected_audiences: frozenset[str]
    #: Empty: the URL by which the browser reaches the console.
    redirect_base: str
    trust: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> OidcSettings:
        """Read the settings; `ConfigError` names a missing or invalid one."""

        def text(name: str, default: str = "") -> str:
            return properties.get(f"{_PREFIX}{name}", "").strip() or default

        for name in ("issuer.url", "client.id"):
            if not text(name):
                raise ConfigError(f"login=oidc needs {_PREFIX}{name}.")
        scopes = text("scopes", "openid profile email").replace(",", " ").split()
        if _SCOPE not in scopes:
            raise invalid_value(f"{_PREFIX}scopes", " ".join(scopes), f"It must contain {_SCOPE}")
        rules = {role: _names(text(f"role.{role.label}", role.label)) for role in Role}
        base = text("redirect.base.url").rstrip("/")
        return cls(
            issuer=checked_url(f"{_PREFIX}issuer.url", text("issuer.url")),
            client_id=text("client.id"),
            client_secret=_secret(properties),
            scopes=" ".join(scopes),
            user_claim=text("user.claim", "preferred_username"),
            rules=RoleRules(text("roles.claim", "roles"), rules),
            expected_audiences=_names(text("expected.audience")),
            redirect_base=_base_url(base) if base else "",
            trust={
                name.removeprefix(_PREFIX): value
                for name, value in properties.items()
                if name.startswith(f"{_PREFIX}ssl.")
            },
        )

    @property
    def redirect_host(self) -> str:
        return urlsplit(self.redirect_base).hostname or ""

    def trust_context(self) -> SSLContext | None:
        """Read the trust store; None: the authorities that the system trusts."""
        if not self.trust:
            return None
        from moldau.security.tls.context import client_context
        from moldau.security.tls.settings import TlsSettings

        return client_context(TlsSettings.of(self.trust.get))


def checked_url(name: str, url: str) -> str:
    """Return the URL of an identity provider; `ConfigError` unless it is https, or on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or parts.scheme not in ("http", "https") or parts.username is not None or parts.fragment:
        raise ConfigError(f"{name}={url[:200]} is not a URL of the form https://host/path.")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ConfigError(f"{name}={url[:200]}: tokens are sent over https only, or to this machine.")
    return url


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _base_url(url: str) -> str:
    name = f"{_PREFIX}redirect.base.url"
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if (
        parts.scheme not in ("http", "https")
        or url != f"{parts.scheme}://{parts.netloc}"
        or not parts.hostname
    ):
        raise invalid_value(name, url, "It must be of the form https://host:port, without a path")
    return url


def _secret(properties: Mapping[str, str]) -> str:
    name = f"{_PREFIX}client.secret"
    path, value = properties.get(f"{name}.file", "").strip(), properties.get(name, "").strip()
    if path and value:
        raise ConfigError(f"Set either {name} or {name}.file.")
    if path:
        try:
            value = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ConfigError(f"{name}.file: {path} cannot be read: {reason}.") from None
        if not value:
            raise ConfigError(f"{name}.file: {path} is empty.")
        return value
    variable = _VARIABLE.fullmatch(value)
    if variable is None:
        return value
    value = os.environ.get(variable[1], "").strip()
    if not value:
        raise ConfigError(f"{name}: the environment variable {variable[1]} is not set.")
    return value
