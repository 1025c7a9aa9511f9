"""The client's side of SASL, built from client properties.

Credentials come from the JAAS entry in `sasl.jaas.config`, from librdkafka's `sasl.username` and
`sasl.password`, or from the section `KafkaClient` of the JAAS file. A node that connects to another one uses
the entry of its listener (`listener`), as Kafka does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from moldau.base.clock import SystemClock
from moldau.base.ids import Randomness
from moldau.config.definition import ConfigError
from moldau.security.jaas import LoginModule, client_modules, option, server_modules
from moldau.security.sasl.mechanism import MECHANISMS, OAUTHBEARER, SaslClient
from moldau.security.sasl.plain import LOGIN_MODULE as PLAIN_MODULE
from moldau.security.sasl.plain import PlainClient
from moldau.security.sasl.scram import LOGIN_MODULE as SCRAM_MODULE
from moldau.security.sasl.scram import TOKEN_EXTENSION, ScramClient
from moldau.security.system_properties import jaas_sections, system_properties

#: Returns the text of a client property, or None if it is not set.
GetProperty = Callable[[str], str | None]
#: Begins the client's side of one exchange with the broker on this host.
BeginClient = Callable[[str], SaslClient]


def sasl_client(
    mechanism: str,
    get: GetProperty,
    *,
    listener: str | None = None,
    randomness: Randomness | None = None,
    environment: Mapping[str, str] | None = None,
) -> BeginClient:
    """Return what begins exchanges with brokers; `ConfigError` names the property that is missing.

    Call it once for all connections: the result holds the token or the ticket that they share.
    """
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"sasl.mechanism={mechanism} is not supported; supported are {', '.join(MECHANISMS)}"
        )
    _refuse_java_classes(mechanism, get)
    source = randomness or random.SystemRandom()
    modules = _modules(get, listener, environment)
    match mechanism:
        case "PLAIN":
            username, password = _credentials(mechanism, get, modules, PLAIN_MODULE)
            return lambda host: PlainClient(username, password)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":
            username, password = _credentials(mechanism, get, modules, SCRAM_MODULE)
            token = (option(modules, TOKEN_EXTENSION, SCRAM_MODULE) or "").lower() == "true"
            return lambda host: ScramClient(mechanism, username, password, source, token=token)
        case "OAUTHBEARER":
            return _oauth(get, modules, system_properties(environment), source)
        case _:
            return _kerberos(get, modules, system_properties(environment))


def _refuse_java_classes(mechanism: str, get: GetProperty) -> None:
    """Refuse classes that supply credentials; those of Kafka for OAUTHBEARER are implemented."""
    names = ["sasl.login.class", "sasl.client.callback.handler.class"]
    if mechanism != OAUTHBEARER:
        names.append("sasl.login.callback.handler.class")
    for name in names:
        if handler := get(name):
            raise ConfigError(f"{name}={handler} is not supported for {mechanism}, it is a Java class")


def _modules(
    get: GetProperty, listener: str | None, environment: Mapping[str, str] | None
) -> Sequence[LoginModule]:
    """Return the login modules; none if the properties name a user without JAAS."""
    config = get("sasl.jaas.config")
    if config is None and get("sasl.username") is not None:
        return ()
    properties = system_properties(environment)
    sections = jaas_sections(properties) if config is None else {}
    if listener is not None:
        return server_modules(listener, config, properties, sections)
    return client_modules(config, properties, sections)


def _oauth(
    get: GetProperty,
    modules: Sequence[LoginModule],
    properties: Mapping[str, str],
    randomness: Randomness,
) -> BeginClient:
    from moldau.security.sasl.oauthbearer.exchange import OAuthClient
    from moldau.security.sasl.oauthbearer.settings import LOGIN_MODULE, source_of

    options = _own(OAUTHBEARER, modules, LOGIN_MODULE).options
    tokens = source_of(get, options, properties, SystemClock(), randomness)
    return lambda host: OAuthClient(tokens)


def _kerberos(get: GetProperty, modules: Sequence[LoginModule], properties: Mapping[str, str]) -> BeginClient:
    from moldau.security.sasl.kerberos.settings import LOGIN_MODULES, client_of

    return client_of(get, _own("GSSAPI", modules, *LOGIN_MODULES).options, properties)


def _own(mechanism: str, modules: Sequence[LoginModule], *names: str) -> LoginModule:
    """Return the entry of the mechanism's login module."""
    for module in modules:
        if module.name in names:
            return module
    others = ", ".join(entry.name for entry in modules) or "none"
    raise ConfigError(
        f"sasl.mechanism={mechanism} needs the login module {names[0]} in sasl.jaas.config, not {others}"
    )


def _credentials(
    mechanism: str, get: GetProperty, modules: Sequence[LoginModule], module: str
) -> tuple[str, str]:
    if not modules:
        username, password = get("sasl.username"), get("sasl.password")
    else:
        _own(mechanism, modules, module)
        username, password = option(modules, "username", module), option(modules, "password", module)
    if not username:
        raise ConfigError(f"sasl.mechanism={mechanism}: the username is not set in sasl.jaas.config")
    if password is None:
        raise ConfigError(f"sasl.mechanism={mechanism}: the password is not set in sasl.jaas.config")
    return username, password
