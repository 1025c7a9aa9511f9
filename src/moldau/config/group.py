"""The configs of groups. The default of most is the broker config `group.` + name.

`GROUP_LIMITS` maps a config to the broker configs with its minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.config.definition import BOOLEAN, INT, STRING, ConfigError, ConfigKey, ConfigValue, table
from moldau.config.validators import OneOf, ShareOffsetReset, at_least


def _protocol(kind: str) -> tuple[ConfigKey, ...]:
    """The configs that all server-side group protocols have in common."""
    return (
        ConfigKey(
            f"{kind}.session.timeout.ms",
            INT,
            45_000,
            f"The time without a heartbeat after which a member of this {kind} group is removed.",
            at_least(1),
        ),
        ConfigKey(
            f"{kind}.heartbeat.interval.ms",
            INT,
            5_000,
            f"The interval between heartbeats of the members of this {kind} group.",
            at_least(1),
        ),
        ConfigKey(
            f"{kind}.assignment.interval.ms",
            INT,
            1_000,
            f"The minimum time between two computations of this {kind} group's assignment.",
            at_least(0),
        ),
    )


_SHARE = (
    ConfigKey(
        "share.auto.offset.reset",
        STRING,
        "latest",
        "The start offset of the group in a new partition: `earliest`, `latest`, or `by_duration:` and a "
        "duration before the present.",
        ShareOffsetReset(),
    ),
    ConfigKey(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        "Whether the group sees records of transactions that are open or aborted.",
        OneOf(("read_committed", "read_uncommitted")),
    ),
    ConfigKey(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        True,
        "Whether members may renew the lock of a record that they are still processing.",
    ),
    ConfigKey(
        "share.delivery.count.limit",
        INT,
        5,
        "The maximum number of delivery attempts of a record to this group.",
        at_least(2),
    ),
    ConfigKey(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        "The duration in milliseconds of the acquisition lock of a delivered record, after which other "
        "members may receive it.",
        at_least(1_000),
    ),
    ConfigKey(
        "share.partition.max.record.locks",
        INT,
        2_000,
        "The maximum number of locked records per partition of this group.",
        at_least(100),
    ),
)

_STREAMS = (
    ConfigKey(
        "streams.num.standby.replicas",
        INT,
        0,
        "The number of standby copies of each task's state in this group.",
        at_least(0),
    ),
    ConfigKey(
        "streams.initial.rebalance.delay.ms",
        INT,
        3_000,
        "The time in milliseconds that the empty group waits for more members before its first assignment.",
        at_least(0),
    ),
)

GROUP_CONFIGS: dict[str, ConfigKey] = table(
    _protocol("consumer"),
    _protocol("share"),
    _protocol("streams"),
    _SHARE,
    _STREAMS,
)

_WITHOUT_SYNONYM = ("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable")

#: The broker config that is the default of a group config.
GROUP_CONFIG_SYNONYMS: dict[str, str] = {
    name: f"group.{name}" for name in GROUP_CONFIGS if name not in _WITHOUT_SYNONYM
}


def _limits(name: str) -> tuple[str | None, str | None]:
    kind, _, rest = name.partition(".")
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"


#: The broker configs with the minimum and the maximum of a group config.
GROUP_LIMITS: dict[str, tuple[str | None, str | None]] = {
    **{
        name: _limits(name)
        for name in GROUP_CONFIG_SYNONYMS
        if not name.startswith("streams.") or name.endswith(("timeout.ms", "interval.ms"))
    },
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}


def validate_group_configs(configs: Mapping[str, str], broker: Mapping[str, ConfigValue]) -> None:
    """Validate all overrides of a group against their definitions and the limits of the broker."""
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise ConfigError(f"Unknown group config name: {name}")
    values = {name: GROUP_CONFIGS[name].parse(text) for name, text in configs.items()}
    for name, value in values.items():
        lowest, highest = GROUP_LIMITS.get(name, (None, None))
        if lowest is not None and _number(value) < _number(broker[lowest]):
            raise ConfigError(f"{name} must be greater than or equal to {lowest}")
        if highest is not None and _number(value) > _number(broker[highest]):
            raise ConfigError(f"{name} must be less than or equal to {highest}")
    for kind in ("consumer", "share", "streams"):
        _check_session(kind, values, broker)


def _check_session(kind: str, values: Mapping[str, ConfigValue], broker: Mapping[str, ConfigValue]) -> None:
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    session_ms = values.get(session, broker[f"group.{session}"])
    heartbeat_ms = values.get(heartbeat, broker[f"group.{heartbeat}"])
    if _number(session_ms) <= _number(heartbeat_ms):
        raise ConfigError(f"{session} must be greater than {heartbeat}")


def _number(value: ConfigValue) -> float:
    return value if isinstance(value, int | float) else 0
