"""Settings of Confluent's services that have no effect here, and names that no service has.

Warnings at the start name them. Some protect a service, which would otherwise be open without notice: each of
these has a sentence of its own, with what to do instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.base.json_log import event

logger = logging.getLogger(__name__)

_UNSET: Final = frozenset({"", "0", "false", "none"})
#: Names, and prefixes ending with a dot, that listeners of all services read.
_READ: Final = (
    "access.control.allow.",
    "auth.ssl.principal.mapping.rules",
    "authentication.",
    "http.request.max.bytes",
    "idle.timeout.ms",
    "listener.name.https.",
    "listeners",
    "oauthbearer.",
    "port",
    "sasl.oauthbearer.",
    "server.connection.limit",
    "shutdown.graceful.ms",
    "ssl.",
)
_PLUGINS: Final = "Java classes are not loaded; see the settings authentication.*"
_LIMITS: Final = "limit requests in a reverse proxy"
#: Settings that protect: name → what to do instead.
_REMEDIES: Final = {
    "rest.servlet.initializor.classes": _PLUGINS,
    "response.http.headers.config": "add headers in a reverse proxy",
    "csrf.prevention.enable": "add tokens in a reverse proxy",
    "dos.filter.enabled": _LIMITS,
    "network.traffic.rate.limit.enable": _LIMITS,
    "reject.options.request": "refuse OPTIONS in a reverse proxy",
    "ssl.spire.enabled": "give the certificates as files",
}
#: Names and prefixes that Confluent's listeners have, and that need nothing instead.
_HARMLESS: Final = (
    "access.control.",
    "compression.enable",
    "confluent.",
    "connector.connection.limit",
    "csrf.prevention.",
    "debug",
    "disable.response.size.metrics.collection",
    "dos.filter.",
    "enable.fips",
    "expected.sni.headers",
    "hsts.header.enable",
    "http2.enabled",
    "jetty.legacy.uri.compliance",
    "listener.name.",
    "listener.protocol.map",
    "max.request.header.size",
    "max.response.header.size",
    "metric.reporters",
    "metrics.",
    "network.",
    "nosniff.prevention.enable",
    "percentile.max.latency.ms",
    "prefix.sni.",
    "proxy.protocol.",
    "reject.invalid.sni.headers",
    "request.logger.name",
    "request.queue.",
    "request.timeout.",
    "resource.extension.classes",
    "response.mediatype.",
    "return.429.instead.of.500.for.jetty.response.errors",
    "sni.",
    "ssl.spire.",
    "suppress.stack.trace.response",
    "thread.pool.",
    "websocket.",
)


@dataclass(frozen=True, slots=True)
class KnownSettings:
    """What a service knows of its settings, besides those of its listeners.

    `read` and `harmless` have names, and prefixes if they end with a dot.
    """

    read: tuple[str, ...]
    remedies: Mapping[str, str]
    harmless: tuple[str, ...] = ()


def warn_of_settings(properties: Mapping[str, str], settings: KnownSettings) -> None:
    """Log the settings that have no effect, and those that are unknown."""
    remedies = _REMEDIES | dict(settings.remedies)
    harmless: list[str] = []
    unknown: list[str] = []
    for name, value in properties.items():
        is_set = value.strip().lower() not in _UNSET
        if name in remedies:
            if is_set:
                logger.warning(
                    "The setting %s has no effect: %s.", name, remedies[name], extra=event("config.warning")
                )
        elif is_among(name, settings.read) or is_among(name, _READ):
            continue
        elif is_among(name, settings.harmless) or is_among(name, _HARMLESS):
            if is_set:
                harmless.append(name)
        else:
            unknown.append(name)
    if harmless:
        logger.warning(
            "These settings have no effect here: %s.",
            ", ".join(sorted(harmless)),
            extra=event("config.warning"),
        )
    if unknown:
        logger.warning(
            "These settings are unknown; check their names: %s.",
            ", ".join(sorted(unknown)),
            extra=event("config.warning"),
        )


def is_among(name: str, known: tuple[str, ...]) -> bool:
    return any(name.startswith(each) if each.endswith(".") else name == each for each in known)
