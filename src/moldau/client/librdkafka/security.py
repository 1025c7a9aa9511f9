"""Translate Kafka's properties of TLS and SASL into librdkafka's.

Users may write either names. Credentials come from the JAAS entry as in Java, tokens from our own providers
(`tokens`), and stores that librdkafka cannot read are converted to PEM (`stores`). Java's settings without a
counterpart in librdkafka are dropped, unless dropping one would weaken the security: then it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.librdkafka.stores import translate_tls
from moldau.client.wire.security import SecuritySettings
from moldau.security.jaas import LoginModule
from moldau.security.sasl.mechanism import GSSAPI, OAUTHBEARER
from moldau.security.system_properties import jaas_sections, system_properties

PROTOCOL: Final = "security.protocol"
NO_GSSAPI: Final = "No provider for SASL mechanism GSSAPI"
#: librdkafka's own names, which are passed on.
_OWN_SASL = frozenset(
    {
        "sasl.username",
        "sasl.password",
        "sasl.kerberos.service.name",
        "sasl.kerberos.principal",
        "sasl.kerberos.keytab",
        "sasl.kerberos.min.time.before.relogin",
    }
)
#: If one of these is given, librdkafka gets the tokens itself.
_OWN_TOKENS = frozenset(
    {
        "oauth_cb",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.method",
    }
)
_TOKEN_NAMES = "sasl.oauthbearer."
_KEYTAB_OPTIONS = {"principal": "sasl.kerberos.principal", "keyTab": "sasl.kerberos.keytab"}


def is_about_security(name: str) -> bool:
    """Return whether `translate_security` reads a property."""
    return name.startswith(("ssl.", "sasl.")) or name in (
        PROTOCOL,
        "enable.ssl.certificate.verification",
        *_OWN_TOKENS,
    )


def translate_security(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's settings; `KafkaError` if they are invalid or librdkafka cannot do it."""
    texts = {name: str(value) for name, value in properties.items() if not callable(value)}
    security = SecuritySettings.from_properties(texts, check=False)
    if security.protocol == "PLAINTEXT":
        return {PROTOCOL: security.protocol} if PROTOCOL in properties else {}
    settings: dict[str, Any] = {PROTOCOL: security.protocol}
    if security.tls:
        settings |= translate_tls(security)
    if security.sasl:
        settings |= _sasl(security, properties)
    return settings


def _sasl(security: SecuritySettings, given: Mapping[str, Any]) -> dict[str, Any]:
    mechanism = security.mechanism
    settings = {"sasl.mechanism": mechanism}
    own = {name: value for name, value in security.properties if name in _OWN_SASL}
    if mechanism == GSSAPI:
        return settings | _kerberos(security) | own
    if mechanism == OAUTHBEARER:
        if any(name in given for name in _OWN_TOKENS):
            names = [name for name in given if name.startswith(_TOKEN_NAMES) or name in _OWN_TOKENS]
            return settings | {name: given[name] for name in names}
        from moldau.client.librdkafka.tokens import token_callback

        return settings | {"oauth_cb": token_callback(security)}
    security.check()
    return settings | own | _credentials(security.login_modules())


def _credentials(modules: Sequence[LoginModule]) -> dict[str, str]:
    found: dict[str, str] = {}
    for module in modules:
        if module.options.get("tokenauth", "").lower() == "true":
            raise _invalid(
                "sasl.jaas.config: librdkafka, the engine of producers and consumers, cannot log in with a "
                "delegation token (tokenauth=true). The admin client, the share consumer, the batch reader "
                "and writer, and pipelines can."
            )
        for option, name in (("username", "sasl.username"), ("password", "sasl.password")):
            if option in module.options:
                found.setdefault(name, module.options[option])
    return found


def _kerberos(security: SecuritySettings) -> dict[str, str]:
    """Return the keytab of the JAAS entry; without one, librdkafka uses the ticket cache."""
    if security.get("sasl.jaas.config") is None and not jaas_sections(system_properties()):
        return {}
    found: dict[str, str] = {}
    for module in security.login_modules():
        found |= {name: module.options[key] for key, name in _KEYTAB_OPTIONS.items() if key in module.options}
        if "serviceName" in module.options:
            found["sasl.kerberos.service.name"] = module.options["serviceName"]
    return found


def explain(sentence: str) -> str:
    """Add the remedy to an error that librdkafka reports when a client is created."""
    if NO_GSSAPI in sentence:
        return (
            "sasl.mechanism=GSSAPI: the installed librdkafka was built without Kerberos. Build it with "
            "libsasl2 (pip install --no-binary confluent-kafka confluent-kafka), or use the admin client, "
            "the share consumer, or the batch reader and writer, which use the package gssapi."
        )
    return f"Invalid client configuration: {sentence}"


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
