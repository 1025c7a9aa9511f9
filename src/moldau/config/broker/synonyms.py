"""Synonyms: broker configs with several names.

`log.roll.ms` and `log.roll.hours` set the same age in different units; `listener.name.x.max.connections` is
`max.connections` of the listener X. A name in a source of higher precedence overrides all synonyms in lower
sources; DescribeConfigs lists them all in order of precedence.
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
_OF_LISTENER = re.compile(r"listener\.name\.([^.]*)\.(.*)")
#: Configs of a listener for each SASL mechanism: `listener.name.internal.plain.sasl.jaas.config`.
_PER_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


def synonyms_of(name: str) -> tuple[str, ...]:
    """All names of a config, in order of precedence; listener prefixes are ignored."""
    return _SYNONYMS.get(name, (name,))


def listener_synonyms_of(name: str) -> tuple[str, ...]:
    """All names of a config, and for a config of one listener also those without the prefix."""
    base = without_listener(name)
    if base is None:
        return synonyms_of(name)
    return (name, next((setting for setting in _PER_MECHANISM if base.endswith(setting)), base))


def without_listener(name: str) -> str | None:
    """The name after `listener.name.{name}.`; None without that prefix."""
    match = _OF_LISTENER.fullmatch(name)
    return None if match is None else match[2]


def listener_of(name: str) -> str | None:
    """The listener of a name that begins with `listener.name.{name}.`; None without that prefix."""
    match = _OF_LISTENER.fullmatch(name)
    return None if match is None else match[1]
