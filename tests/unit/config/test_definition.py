"""Config values: parsed, formatted and refused as in Kafka."""

from __future__ import annotations

import sys

import pytest

from moldau.base.errors import ErrorCode
from moldau.config.definition import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigError,
    ConfigKey,
    ConfigType,
    ConfigValue,
    format_value,
    parse_type,
)
from moldau.config.validators import ListOf, at_least


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "False", False),
        (INT, "10 ", 10),
        (INT, "+5", 5),
        (INT, "-2147483648", -(2**31)),
        (INT, "٣", 3),
        (SHORT, "32767", 32767),
        (LONG, "9223372036854775807", 2**63 - 1),
        (DOUBLE, ".5", 0.5),
        (DOUBLE, "1.", 1.0),
        (DOUBLE, "1e-3", 0.001),
        (DOUBLE, "0.5f", 0.5),
        (DOUBLE, "0x1p-3", 0.125),
        (DOUBLE, "Infinity", float("inf")),
        (DOUBLE, "1e400", float("inf")),
        (STRING, "  two words ", "two words"),
        (LIST, "compact , delete", ("compact", "delete")),
        (LIST, " ", ()),
        (LIST, "a,,b", ("a", "", "b")),
        (CLASS, " x.Y ", "x.Y"),
        (PASSWORD, " secret ", "secret"),
    ],
)
def test_text_is_parsed_as_in_kafka(config_type: ConfigType, text: str, value: ConfigValue) -> None:
    assert parse_type("some.name", text, config_type) == value


@pytest.mark.parametrize(
    ("config_type", "text", "reason"),
    [
        (BOOLEAN, "yes", "Expected value to be either true or false"),
        (BOOLEAN, "", "Expected value to be either true or false"),
        (INT, "", "Not a number of type INT"),
        (INT, "0x10", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "1.5", "Not a number of type INT"),
        (INT, "2147483648", "Not a number of type INT"),
        (INT, "9" * 5000, "Not a number of type INT"),
        (SHORT, "32768", "Not a number of type SHORT"),
        (LONG, "9223372036854775808", "Not a number of type LONG"),
        (LONG, "1L", "Not a number of type LONG"),
        (DOUBLE, "inf", "Not a number of type DOUBLE"),
        (DOUBLE, "nan", "Not a number of type DOUBLE"),
        (DOUBLE, "NaN", "Not a number of type DOUBLE"),
        (DOUBLE, "1_0.0", "Not a number of type DOUBLE"),
        (DOUBLE, "", "Not a number of type DOUBLE"),
    ],
)
def test_text_of_another_type_is_refused(config_type: ConfigType, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_type("some.name", text, config_type)
    assert refusal.value.sentence == f"Invalid value {text} for configuration some.name: {reason}"
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        ("x", "x"),
        ((), ""),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e-05, "1.0E-5"),
        (1.5e-05, "1.5E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (2147483647.0, "2.147483647E9"),
        (-123456789.0, "-1.23456789E8"),
        (sys.float_info.max, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (1e22, "1.0E22"),
    ],
)
def test_values_are_formatted_as_in_java(value: ConfigValue, text: str | None) -> None:
    assert format_value(value) == text


def test_config_key_parses_and_validates() -> None:
    key = ConfigKey("x.bytes", INT, 5, "Bytes.", at_least(1))
    assert key.parse("7") == 7
    assert key.read("0") == 0
    with pytest.raises(
        ConfigError, match=r"Invalid value 0 for configuration x\.bytes: Value must be at least 1"
    ):
        key.parse("0")


def test_duplicate_list_entries_are_removed() -> None:
    assert ConfigKey("x", LIST, (), "X.", ListOf()).parse("a,b, a") == ("a", "b")
    assert ConfigKey("x", LIST, (), "X.").parse("a,b, a") == ("a", "b", "a")


def test_only_passwords_are_secret() -> None:
    assert ConfigKey("x", PASSWORD, None, "X.").sensitive
    assert not ConfigKey("x", STRING, None, "X.").sensitive
