"""Kafka's predicates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    AllOf,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
)
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.transforms.interface import Predicate
from moldau.pipelines.connect.transforms.java_regex import compile_java, regex_validator


class HasHeaderKey(Predicate):
    """Records with a header of this name."""

    config: ClassVar[ConfigDef] = ConfigDef().define(
        "name",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.MEDIUM,
        "The name of the header.",
        validator=NonEmptyString(),
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        self._name: str = self.config.parse(config)["name"]

    def test(self, record: ConnectRecord) -> bool:
        return record.headers.last_with_name(self._name) is not None


class RecordIsTombstone(Predicate):
    """Records without value."""

    config: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, Any]) -> None:
        """Nothing to configure."""

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None


class TopicNameMatches(Predicate):
    """Records of topics whose whole name matches an expression."""

    config: ClassVar[ConfigDef] = ConfigDef().define(
        "pattern",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.MEDIUM,
        "The expression that the name of the topic must match.",
        validator=AllOf((NonEmptyString(), regex_validator)),
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        self._pattern = compile_java(self.config.parse(config)["pattern"])

    def test(self, record: ConnectRecord) -> bool:
        return self._pattern.fullmatch(record.topic) is not None
