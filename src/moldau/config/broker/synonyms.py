"""Broker settings that are several names for one thing.

`log.roll.ms` and `log.roll.hours` set the same age in different units; `listener.name.x.max.connections` is
`max.connections` of the listener X. When a stronger source sets any of the names, weaker ones are forgotten;
DescribeConfigs lists them all, strongest first.
"""

from __future__ import annotations

import re

_UNITS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SYNONYMS = {name: names for names in _UNITS for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
#: Settings that a listener has once per SASL mechanism: `listener.name.internal.plain.sasl.jaas.config`.
_PER_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


def synonyms_of(name: str) -> tuple[str, ...]:
    """All names for the same setting, strongest first; listener prefixes are left alone."""
    return _SYNONYMS.get(name, (name,))


def listener_synonyms_of(name: str) -> tuple[str, ...]:
    """The same, and for a setting of one listener also the one without the prefix."""
    base = without_listener(name)
    if base is None:
        return synonyms_of(name)
    return (name, next((setting for setting in _PER_MECHANISM if base.endswith(setting)), base))


def without_listener(name: str) -> str | None:
    """What follows `listener.name.{name}.`; None when there is no such prefix."""
    match = re.fullmatch(r"listener\.name\.[^.]*\.(.*)", name)
    return None if match is None else match[1]
