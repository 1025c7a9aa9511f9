"""The client's side of SASL, built from client properties.

Credentials come from the JAAS entry in `sasl.jaas.config`, from librdkafka's `sasl.username` and
`sasl.password`, or from the section `KafkaClient` of the JAAS file. A node that connects to another one uses
the entry of its listener (`listener`), as Kafka does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from moldau.base.ids import Randomness
from moldau.config.definition import ConfigError
from moldau.security.jaas import LoginModule, client_modules, option, server_modules
from moldau.security.sasl.mechanism import MECHANISMS, SaslClient
from moldau.security.sasl.plain import LOGIN_MODULE as PLAIN_MODULE
from moldau.security.sasl.plain import PlainClient
from moldau.security.sasl.scram import LOGIN_MODULE as SCRAM_MODULE
from moldau.security.sasl.scram import TOKEN_EXTENSION, ScramClient
from moldau.security.system_properties import jaas_sections, system_properties

#: Returns the text of a client property, or None if it is not set.
GetProperty = Callable[[str], str | None]
#: Makes the client's side of one exchange.
MakeClient = Callable[[], SaslClient]


def sasl_client(
    mechanism: str,
    get: GetProperty,
    host: str = "",
    *,
    listener: str | None = None,
    randomness: Randomness | None = None,
    environment: Mapping[str, str] | None = None,
) -> MakeClient:
    """Return what begins an exchange with a broker; `ConfigError` names the property that is missing."""
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"sasl.mechanism={mechanism} is not supported; supported are {', '.join(MECHANISMS)}"
        )
    source = randomness or random.SystemRandom()
    modules = _modules(get, listener, environment)
    match mechanism:
        case "PLAIN":
            username, password = _credentials(mechanism, get, modules, PLAIN_MODULE)
            return lambda: PlainClient(username, password)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":
            username, password = _credentials(mechanism, get, modules, SCRAM_MODULE)
            token = (option(modules, TOKEN_EXTENSION, SCRAM_MODULE) or "").lower() == "true"
            return lambda: ScramClient(mechanism, username, password, source, token=token)
        case _:
            raise ConfigError(f"sasl.mechanism={mechanism} is not supported yet")


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


def _credentials(
    mechanism: str, get: GetProperty, modules: Sequence[LoginModule], module: str
) -> tuple[str, str]:
    if not modules:
        username, password = get("sasl.username"), get("sasl.password")
    else:
        if all(entry.name != module for entry in modules):
            raise ConfigError(
                f"sasl.mechanism={mechanism} needs the login module {module} in sasl.jaas.config, "
                f"not {', '.join(entry.name for entry in modules)}"
            )
        username, password = option(modules, "username", module), option(modules, "password", module)
    if not username:
        raise ConfigError(f"sasl.mechanism={mechanism}: the username is not set in sasl.jaas.config")
    if password is None:
        raise ConfigError(f"sasl.mechanism={mechanism}: the password is not set in sasl.jaas.config")
    return username, password
