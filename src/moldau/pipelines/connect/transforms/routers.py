"""RegexRouter and TimestampRouter change the topic of records; Filter drops them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.date_format import DateFormat
from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.logical import datetime_of
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.transforms.interface import Transformation
from moldau.pipelines.connect.transforms.java_regex import Replacement, compile_java, regex_validator


class RegexRouter(Transformation):
    """Rename topics that match an expression as a whole."""

    config: ClassVar[ConfigDef] = (
        ConfigDef()
        .define(
            "regex",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "The expression that the whole name of a topic must match.",
            validator=regex_validator,
        )
        .define(
            "replacement",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "The new name, with references to groups as $1 or ${name}.",
        )
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._pattern = compile_java(settings["regex"])
        self._replacement = Replacement(settings["replacement"], self._pattern)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if self._pattern.fullmatch(record.topic) is None:
            return record
        return record.replace(topic=self._pattern.sub(self._replacement.expand, record.topic, count=1))


class TimestampRouter(Transformation):
    """Name the topic after the record's timestamp."""

    config: ClassVar[ConfigDef] = (
        ConfigDef()
        .define(
            "topic.format",
            ConfigType.STRING,
            "${topic}-${timestamp}",
            Importance.HIGH,
            "The new name, in which ${topic} and ${timestamp} are replaced.",
        )
        .define(
            "timestamp.format",
            ConfigType.STRING,
            "yyyyMMdd",
            Importance.HIGH,
            "The form of ${timestamp}, a pattern of Java's SimpleDateFormat.",
        )
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._topic_format: str = settings["topic.format"]
        try:
            self._timestamp_format = DateFormat(settings["timestamp.format"])
        except ValueError as error:
            raise ConfigError.invalid("timestamp.format", settings["timestamp.format"], str(error)) from None

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.timestamp is None:
            raise DataError(
                f"Timestamp missing on record: topic {record.topic}, partition {record.partition}"
            )
        timestamp = self._timestamp_format.format(datetime_of(record.timestamp))
        topic = self._topic_format.replace("${topic}", record.topic).replace("${timestamp}", timestamp)
        return record.replace(topic=topic)


class Filter(Transformation):
    """Drop every record that it is applied to; a predicate decides which."""

    config: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, Any]) -> None:
        """Nothing to configure."""

    def apply(self, record: ConnectRecord) -> None:
        return None
