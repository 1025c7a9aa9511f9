"""The two kinds of listener a node can have."""

from __future__ import annotations

from typing import Final

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
