"""Log levels as BROKER_LOGGER resources (KIP-412); as in Kafka, changes are lost with a restart.

Kafka's level names map to Python's: TRACE is DEBUG, FATAL is CRITICAL. `root` is the root logger.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.definition import ConfigSource, ConfigType
from moldau.config.describe import ConfigEntryDescription
from moldau.security.acl.audit import AUDIT_LOGGER
from moldau.server.dispatch.request_log import REQUEST_LOG, REQUEST_LOGGER, SLOW_LOGGER

ROOT = "root"
#: Loggers that are not named after modules of ours.
_OTHERS = (AUDIT_LOGGER, REQUEST_LOGGER)
#: Loggers that have a level of their own until one is set.
_OFF = (REQUEST_LOGGER, SLOW_LOGGER)
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {level: name for name, level in LEVELS.items() if name != "TRACE"}


def logger_names() -> list[str]:
    ours = (name for name in logging.root.manager.loggerDict if name.split(".")[0] == "moldau")
    return [ROOT, *sorted((*_OTHERS, *ours))]


def describe_loggers(names: Collection[str] | None) -> list[ConfigEntryDescription]:
    return [
        ConfigEntryDescription(
            name=name,
            value=_NAMES.get(_logger(name).getEffectiveLevel(), "INFO"),
            source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            is_sensitive=False,
            read_only=False,
            type=ConfigType.STRING,
            documentation=None,
            synonyms=(),
        )
        for name in logger_names()
        if names is None or name in names
    ]


def check_logger(name: str) -> None:
    if name not in logger_names():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def set_level(name: str, level: str | None) -> None:
    default = logging.WARNING if name in _OFF else logging.NOTSET
    _logger(name).setLevel(LEVELS[level] if level is not None else default)
    REQUEST_LOG.refresh()


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)
