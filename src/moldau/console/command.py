"""Entry point: the console as a service, from properties."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.console.service import Console
from moldau.console.settings import ConsoleSettings


def create_console(properties: Mapping[str, str]) -> Console:
    """Create the console; `ConfigError` names an invalid setting."""
    return Console(ConsoleSettings.from_properties(properties))
