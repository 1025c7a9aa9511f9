"""The configs of client metrics subscriptions (KIP-714): which clients push which metrics, and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.definition import INT, LIST, ConfigError, ConfigKey, table
from moldau.config.validators import ListOf

CLIENT_METRICS_CONFIGS: dict[str, ConfigKey] = table(
    (
        ConfigKey(
            "metrics",
            LIST,
            (),
            "The prefixes of the names of the metrics to push; `*` means all of them.",
            ListOf(),
        ),
        ConfigKey("interval.ms", INT, 300_000, "The interval at which clients push metrics."),
        ConfigKey(
            "match",
            LIST,
            (),
            "The clients that push metrics, as `client_id=pattern` and the like, separated by commas. Empty "
            "means every client.",
            ListOf(),
        ),
    )
)

_MATCHABLE = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)


def validate_client_metrics_configs(subscription: str, configs: Mapping[str, str]) -> None:
    """Validate the name, configs and patterns of a subscription."""
    if not subscription:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for name in configs:
        if name not in CLIENT_METRICS_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in configs.items()}
    interval = values.get("interval.ms")
    if isinstance(interval, int) and not 100 <= interval <= 3_600_000:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    patterns = values.get("match")
    parse_match_patterns(patterns if isinstance(patterns, tuple) else ())


def parse_match_patterns(patterns: Sequence[str]) -> dict[str, re.Pattern[str]]:
    """Parse `parameter=pattern` entries; a pattern must match the whole value of the client's parameter."""
    parsed = {}
    for text in patterns:
        parameter, _, pattern = (part.strip() for part in text.partition("="))
        if parameter not in _MATCHABLE or not pattern or "=" in pattern:
            raise ConfigError(f"Illegal client matching pattern: {text}")
        try:
            parsed[parameter] = re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"Illegal client matching pattern: {text}") from error
    return parsed
