"""Settings of Confluent's services that have no effect here: a warning at the start says so.

Some of them protect a service, which would otherwise be open without notice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

logger = logging.getLogger(__name__)

_UNSET: Final = frozenset({"", "0", "false", "none"})
_COMMON: Final = {
    "rest.servlet.initializor.classes": "classes of Java are not loaded; see the settings authentication.*",
    "response.http.headers.config": "add headers in a reverse proxy",
}


def warn_of_settings(properties: Mapping[str, str], remedies: Mapping[str, str]) -> None:
    """Log the settings without effect, by name with the remedy of each."""
    for name, remedy in (_COMMON | dict(remedies)).items():
        if properties.get(name, "").strip().lower() not in _UNSET:
            logger.warning("The setting %s has no effect: %s.", name, remedy)
