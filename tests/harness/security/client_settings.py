"""What clients need to connect to a `SecuredNode`: Java's properties, and the settings of other clients."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import NamedTuple

from tests.harness.security.keytool import PASSWORD
from tests.harness.security.secured_node import (
    MECHANISMS,
    SASL_LISTENERS,
    STORE_LISTENERS,
    USERS,
    SecuredNode,
    jaas,
)


class Way(NamedTuple):
    """A way to connect: a listener, and the mechanism of SASL listeners."""

    listener: str
    mechanism: str = ""

    @property
    def protocol(self) -> str:
        return self.listener if self.mechanism else "SSL"

    def __str__(self) -> str:
        return " ".join(filter(None, self))


#: Every way to connect.
WAYS = (
    *(Way(listener, mechanism) for listener in SASL_LISTENERS for mechanism in MECHANISMS),
    *(Way(listener) for listener in STORE_LISTENERS),
)


def unsecured_token(user: str, lifetime_seconds: int = 3600) -> str:
    """Return a JSON Web Signature without a signature, which `OAUTHBEARER` accepts in development."""
    now = int(time.time())
    claims = {"sub": user, "iat": now, "exp": now + lifetime_seconds}
    return f"{_base64({'alg': 'none'})}.{_base64(claims)}."


def _base64(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def java_settings(
    node: SecuredNode, way: Way, user: str = "alice", password: str | None = None, *, store: str = ""
) -> dict[str, str]:
    """Return the properties of Kafka's Java clients and of our tools."""
    settings = {"bootstrap.servers": node.address(way.listener), "security.protocol": way.protocol}
    if way.mechanism:
        settings["sasl.mechanism"] = way.mechanism
        settings["sasl.jaas.config"] = jaas(way.mechanism, user, password)
    if way.protocol.endswith("SSL"):
        kind = store or (way.listener if way.protocol == "SSL" else "PKCS12")
        settings |= node.stores.settings("client", kind, key=way.protocol == "SSL")
    return settings


def write_java_settings(path: Path, settings: dict[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def librdkafka_settings(
    node: SecuredNode, way: Way, user: str = "alice", password: str | None = None
) -> dict[str, str]:
    settings = {"bootstrap.servers": node.address(way.listener), "security.protocol": way.protocol}
    if way.mechanism:
        settings["sasl.mechanism"] = way.mechanism
    if way.mechanism == "OAUTHBEARER":
        settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        settings["sasl.oauthbearer.config"] = f"principal={user}"
    elif way.mechanism:
        settings["sasl.username"] = user
        settings["sasl.password"] = USERS[user] if password is None else password
    if way.protocol.endswith("SSL"):
        settings["ssl.ca.location"] = str(node.stores.trust("PEM"))
    if way.protocol == "SSL":
        settings |= _librdkafka_certificate(node, way)
    return settings


def _librdkafka_certificate(node: SecuredNode, way: Way) -> dict[str, str]:
    if way.listener == "PKCS12":
        store = str(node.stores.key("client", "PKCS12"))
        return {"ssl.keystore.location": store, "ssl.keystore.password": PASSWORD}
    return {
        "ssl.certificate.location": str(node.stores.part("client", "chain")),
        "ssl.key.location": str(node.stores.part("client", "key")),
    }
