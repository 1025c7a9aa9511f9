"""Connectors in the folders of `plugin.path`: Python packages that are not installed with Moldau.

A folder of the path, or a folder in it, is one plugin: what `pip install --target FOLDER package` makes. Its
connectors are found by the entry point group `moldau.connectors`. Its modules come after those that are
installed, so a plugin cannot replace Moldau's own. Driver jars are files with the suffix `.jar` in the same
folders.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

SETTING: Final = "plugin.path"


def folders(properties: Mapping[str, str]) -> list[Path]:
    """Return the folders of plugins; what does not exist is left out with a warning, as in Kafka Connect."""
    found = []
    for text in (each.strip() for each in (properties.get(SETTING) or "").split(",")):
        path = Path(text)
        if text and path.is_dir():
            inner = (each for each in sorted(path.iterdir()) if each.is_dir())
            found += [path.resolve(), *(each.resolve() for each in inner if _is_package_folder(each))]
        elif text:
            logger.warning("The folder %s of %s does not exist", text, SETTING)
    return found


def _is_package_folder(folder: Path) -> bool:
    return next(folder.glob("*.dist-info"), None) is not None or next(folder.glob("*.jar"), None) is not None


def entry_points(properties: Mapping[str, str], group: str) -> Iterator[EntryPoint]:
    """Return the entry points of the plugins, whose modules can be imported from now on."""
    for folder in folders(properties):
        found = [
            point
            for distribution in distributions(path=[str(folder)])
            for point in distribution.entry_points
            if point.group == group
        ]
        if found and str(folder) not in sys.path:
            sys.path.append(str(folder))
        yield from found


def jars(properties: Mapping[str, str]) -> list[str]:
    """Return the jars of the plugins, for the drivers that Spark needs."""
    return [str(each) for folder in folders(properties) for each in sorted(folder.glob("*.jar"))]
