"""Validators of config values, with Kafka's error messages."""

from __future__ import annotations

import pytest

from moldau.config.definition import ConfigError, ConfigValue, Validator
from moldau.config.validators import (
    GzipLevel,
    ListOf,
    NonEmpty,
    NonNull,
    OneOf,
    OneOfAnyCase,
    ShareOffsetReset,
    ThrottledReplicas,
    at_least,
    between,
)

POLICY = ListOf(("compact", "delete"))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (at_least(0), 0),
        (between(0, 1), 1.0),
        (between(-131_072, 22), -131_072),
        (OneOf(("a", "b")), "b"),
        (OneOfAnyCase(("RS256",)), "rs256"),
        (POLICY, ("delete", "compact")),
        (POLICY, ()),
        (ListOf(null_allowed=True), None),
        (NonEmpty(), None),
        (NonNull(), ""),
        (GzipLevel(), -1),
        (GzipLevel(), 9),
        (ThrottledReplicas(), ()),
        (ThrottledReplicas(), ("*",)),
        (ThrottledReplicas(), ("0:1", "1:2")),
        (ShareOffsetReset(), "earliest"),
        (ShareOffsetReset(), "by_duration:PT1H"),
        (ShareOffsetReset(), "by_duration:P3DT5M0.5S"),
    ],
)
def test_valid_values_are_accepted(rule: Validator, value: ConfigValue) -> None:
    rule.check("x", value)


@pytest.mark.parametrize(
    ("rule", "value", "sentence"),
    [
        (at_least(0), -1, "Invalid value -1 for configuration x: Value must be at least 0"),
        (at_least(0), None, "Invalid value null for configuration x: Value must be non-null"),
        (between(0, 1), 5.0, "Invalid value 5.0 for configuration x: Value must be no more than 1"),
        (between(0, 0.5), 1.0, "Invalid value 1.0 for configuration x: Value must be no more than 0.5"),
        (OneOf(("a", "b")), "A", "Invalid value A for configuration x: String must be one of: a, b"),
        (OneOf(("a",)), None, "Invalid value null for configuration x: String must be one of: a"),
        (
            OneOfAnyCase(("ES256", "RS256")),
            "x",
            "Invalid value x for configuration x: String must be one of (case insensitive): ES256, RS256",
        ),
        (POLICY, ("foo",), "Invalid value foo for configuration x: String must be one of: compact, delete"),
        (POLICY, ("compact", ""), "Configuration 'x' values must not be empty."),
        (POLICY, None, "Configuration 'x' values must not be null."),
        (
            ListOf(empty_allowed=False),
            (),
            "Configuration 'x' must not be empty. Valid values include: any non-empty value",
        ),
        (
            ListOf(("a", "b"), empty_allowed=False),
            (),
            "Configuration 'x' must not be empty. Valid values include: [a, b]",
        ),
        (NonEmpty(), "", "Invalid value  for configuration x: String must be non-empty"),
        (NonNull(), None, "Invalid value null for configuration x: entry must be non null"),
        (GzipLevel(), 0, "Invalid value 0 for configuration x: Value must be between 1 and 9 or equal to -1"),
        (
            ThrottledReplicas(),
            ("0", "x"),
            "Invalid value [0, x] for configuration x: x must be the literal '*' or a list of replicas "
            "in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            ShareOffsetReset(),
            "none",
            "Invalid value none for configuration x: Invalid value `none` for configuration x. The value "
            "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ],
)
def test_invalid_value_is_refused_with_kafkas_message(
    rule: Validator, value: ConfigValue, sentence: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        rule.check("x", value)
    assert refusal.value.sentence == sentence


@pytest.mark.parametrize(
    "value", ["by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H", "LATEST"]
)
def test_invalid_durations_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        ShareOffsetReset().check("x", value)


def test_validators_describe_the_allowed_values() -> None:
    assert [str(rule) for rule in (at_least(1), between(0, 0.5), POLICY, GzipLevel())] == [
        "[1,...]",
        "[0,...,0.5]",
        "[compact, delete]",
        "[1,...,9] or -1",
    ]
