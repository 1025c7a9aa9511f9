"""The optional extra: a missing package is reported with the command that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from moldau.config.definition import ConfigError

_PACKAGE: Final = "opentelemetry"


@contextmanager
def needs_opentelemetry(setting: str) -> Iterator[None]:
    """Name the extra if an import in the block fails because OpenTelemetry is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _PACKAGE:
            raise
        raise ConfigError(
            f"{setting} needs OpenTelemetry, which is not installed: pip install 'moldau[otel]'"
        ) from error
