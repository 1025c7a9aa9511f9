"""librdkafka's names and values of Kafka's security properties.

Users write either names: librdkafka's are common in Python programs. If both are given, Kafka's win.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from moldau.base.errors import ErrorCode, KafkaError

#: Turns the verification of the server's certificate off. Kafka has no such property.
VERIFY: Final = "enable.ssl.certificate.verification"
_PREFIXES = ("ssl.", "sasl.")
#: librdkafka's names of Kafka's properties.
_LIBRDKAFKA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
#: librdkafka's names of PEM files whose content is the value of one of Kafka's properties.
_LIBRDKAFKA_FILES = {
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
#: librdkafka's names that make a store a PEM store.
_LIBRDKAFKA_PEM = {
    "truststore": ("ssl.ca.location", "ssl.ca.pem"),
    "keystore": ("ssl.certificate.location", "ssl.certificate.pem"),
}
#: librdkafka's names of the options of a Kerberos key table.
_LIBRDKAFKA_KEYTAB = {"sasl.kerberos.keytab": "keyTab", "sasl.kerberos.principal": "principal"}
#: librdkafka's names with which OAUTHBEARER needs no JAAS entry.
_LIBRDKAFKA_TOKENS = (
    "enable.sasl.oauthbearer.unsecure.jwt",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.method",
)


def kafka_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of TLS and SASL by Kafka's names; those win over librdkafka's."""
    found: dict[str, str] = {}
    for name, value in properties.items():
        if name.startswith(_PREFIXES) or name == VERIFY:
            kafka_name = _LIBRDKAFKA_NAMES.get(name, name)
            if kafka_name == name or kafka_name not in properties:
                found[kafka_name] = str(value)
    return found | _librdkafka_values(found, properties)


def _librdkafka_values(found: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the changes to values that Kafka and librdkafka write differently."""
    changes: dict[str, str] = {}
    if (found.get("ssl.endpoint.identification.algorithm") or "").strip().lower() == "none":
        changes["ssl.endpoint.identification.algorithm"] = ""
    for store, names in _LIBRDKAFKA_PEM.items():
        if f"ssl.{store}.type" not in given and any(name in given for name in names):
            changes[f"ssl.{store}.type"] = "PEM"
    entry = _jaas_entry(given) if "sasl.jaas.config" not in found else None
    return changes if entry is None else {**changes, "sasl.jaas.config": entry}


def _jaas_entry(given: Mapping[str, str]) -> str | None:
    """Return the JAAS entry for librdkafka's names of tokens and key tables."""
    if any(name in given for name in _LIBRDKAFKA_TOKENS):
        return _token_entry(given.get("sasl.oauthbearer.config", ""))
    options = [f'{option}="{given[name]}"' for name, option in _LIBRDKAFKA_KEYTAB.items() if name in given]
    if not options:
        return None
    module = "com.sun.security.auth.module.Krb5LoginModule"
    return f"{module} required useKeyTab=true storeKey=true {' '.join(options)};"


def _token_entry(config: str) -> str:
    """Return the JAAS entry for `sasl.oauthbearer.config`, which names the claims of unsecured tokens."""
    principal = re.search(r"\bprincipal=(\S+)", config)
    claim = "" if principal is None else f' unsecuredLoginStringClaim_sub="{principal[1]}"'
    return f"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required{claim};"


def with_pem_files(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the content of the files that only librdkafka's names name."""
    content = {name: _read(name, path) for name, path in properties.items() if name in _LIBRDKAFKA_FILES}
    return {**properties, **{_LIBRDKAFKA_FILES[name]: text for name, text in content.items()}}


def _read(name: str, path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        raise _invalid(f"{name}: the file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _invalid(f"{name}: the file {path} is not PEM") from error


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
