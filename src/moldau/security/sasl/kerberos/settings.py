"""GSSAPI from configs: the options of Java's Krb5LoginModule as credentials of the Kerberos library.

A server accepts tickets for its `principal` with the keys in `keyTab`. A client gets its ticket with the key
table (`useKeyTab`), which the library renews, or takes it from a ticket cache (`useTicketCache`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from moldau.config.definition import ConfigError
from moldau.security.sasl.kerberos.exchange import KerberosClient, KerberosServer
from moldau.security.sasl.kerberos.names import ShortNames

if TYPE_CHECKING:
    from gssapi import Credentials

LOGIN_MODULES: Final = (
    "com.sun.security.auth.module.Krb5LoginModule",
    "com.ibm.security.auth.module.Krb5LoginModule",
)
#: The JVM property of the Kerberos configuration file.
_KRB5_CONF = "java.security.krb5.conf"
_SERVICE_NAME = "sasl.kerberos.service.name"
_RULES = "sasl.kerberos.principal.to.local.rules"

#: Returns the text of a config of the mechanism, or None.
Get = Callable[[str], str | None]


def server_of(
    get: Get, options: Mapping[str, str], properties: Mapping[str, str]
) -> Callable[[], KerberosServer]:
    """Return what begins exchanges of a listener."""
    _prepare(properties)
    _service_name(get, options)
    credentials = _accepting(options)
    rules = [rule.strip() for rule in (get(_RULES) or "DEFAULT").split(",")]
    names = ShortNames([rule for rule in rules if rule], _default_realm())
    return lambda: KerberosServer(credentials, names)


def client_of(
    get: Get, options: Mapping[str, str], properties: Mapping[str, str]
) -> Callable[[str], KerberosClient]:
    """Return what begins exchanges with the brokers on a host."""
    _prepare(properties)
    service = _service_name(get, options)
    credentials = _initiating(options)

    def begin(host: str) -> KerberosClient:
        from gssapi import Name, NameType

        return KerberosClient(credentials, lambda: Name(f"{service}@{host}", NameType.hostbased_service))

    return begin


def _prepare(properties: Mapping[str, str]) -> None:
    """Check that the library is there, and point it to the configuration file of the JVM property."""
    if _KRB5_CONF in properties:
        os.environ.setdefault("KRB5_CONFIG", properties[_KRB5_CONF])
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError) as error:
        raise ConfigError(
            "SASL mechanism GSSAPI needs the Python package gssapi and the Kerberos libraries of the system: "
            f"pip install 'moldau[kerberos]' ({error})"
        ) from None


def _service_name(get: Get, options: Mapping[str, str]) -> str:
    of_config, of_jaas = get(_SERVICE_NAME), options.get("serviceName")
    if of_config and of_jaas and of_config != of_jaas:
        raise ConfigError(
            f"Conflicting serviceName values found in JAAS and Kafka configs: serviceName={of_jaas}, "
            f"{_SERVICE_NAME}={of_config}"
        )
    name = of_jaas or of_config
    if not name:
        raise ConfigError(f"No serviceName defined in either JAAS or Kafka config: set {_SERVICE_NAME}")
    return name


def _default_realm() -> str:
    """Return the default realm of the Kerberos configuration; empty without one."""
    from gssapi import MechType, Name, NameType
    from gssapi.exceptions import GSSError

    try:
        name = str(Name("x", NameType.user).canonicalize(MechType.kerberos))
    except GSSError:
        return ""
    return name.partition("@")[2]


def _accepting(options: Mapping[str, str]) -> Callable[[], Credentials]:
    store = {"keytab": f"FILE:{_keytab(options)}"} if _is_true(options, "useKeyTab") else None
    return lambda: _acquire(options.get("principal"), "accept", store)


def _initiating(options: Mapping[str, str]) -> Callable[[], Credentials]:
    principal = options.get("principal")
    if _is_true(options, "useKeyTab"):
        keytab = _keytab(options)
        # The library gets a ticket with the key table, keeps it in memory and renews it.
        store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:moldau-{principal or keytab}"}
        return lambda: _acquire(principal, "initiate", store)
    cached = options.get("ticketCache")
    in_cache = {"ccache": cached} if cached else None
    return lambda: _acquire(principal, "initiate", in_cache)


def _acquire(principal: str | None, usage: str, store: Mapping[str, str] | None) -> Credentials:
    from gssapi import Credentials, MechType, Name, NameType

    name = None if principal is None else Name(principal, NameType.kerberos_principal)
    return Credentials(name=name, usage=usage, store=store, mechs=[MechType.kerberos])


def _keytab(options: Mapping[str, str]) -> str:
    path = options.get("keyTab", "").removeprefix("FILE:").removeprefix("file:")
    if not path:
        raise ConfigError("sasl.jaas.config: useKeyTab=true needs keyTab, the path of the key table")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"sasl.jaas.config: the key table {path} does not exist or cannot be read")
    return path


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
