"""Feature levels: names of metadata versions, levels of releases, dependencies."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.cli.shared.tool import ToolError
from moldau.metadata.features import (
    ELR_VERSION,
    FEATURES,
    GROUP_VERSION,
    KRAFT_VERSION,
    MAX_METADATA_VERSION,
    METADATA_VERSION,
    MIN_METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    metadata_version_name,
    parse_metadata_version,
)

#: All features except metadata.version, in the order of Kafka's tools.
PRODUCTION_FEATURES = (
    KRAFT_VERSION,
    TRANSACTION_VERSION,
    GROUP_VERSION,
    ELR_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
)
_SHORT = range(-(2**15), 2**15)


def parse_level(text: str) -> tuple[str, int]:
    """Parse `name=level`."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level.strip())
    except ValueError:
        number = _SHORT.stop
    if number not in _SHORT:
        raise ToolError(
            f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
        )
    return name.strip(), number


def level_text(feature: str, level: int) -> str:
    """Return the name of a metadata version, or the number of another level."""
    if feature != METADATA_VERSION:
        return str(level)
    try:
        return metadata_version_name(level)
    except ValueError:
        return f"UNKNOWN {level}"


def parse_version(text: str) -> int:
    try:
        return parse_metadata_version(text)
    except ValueError as error:
        raise ToolError(str(error)) from error


def default_level(feature: str, metadata_version: int) -> int:
    """Return the level of a feature in a cluster formatted with this metadata version."""
    since = FEATURES[feature].bootstrap
    return max(level for level, first in enumerate(since) if first <= metadata_version)


def show_mapping(release: str | None) -> None:
    version = MAX_METADATA_VERSION if release is None else parse_version(release)
    print(f"{METADATA_VERSION}={version} ({release or metadata_version_name(version)})")
    for name in PRODUCTION_FEATURES:
        print(f"{name}={default_level(name, version)}")


def show_dependencies(levels: Iterable[tuple[str, int]]) -> None:
    for name, level in levels:
        if name == METADATA_VERSION:
            if not MIN_METADATA_VERSION <= level <= MAX_METADATA_VERSION:
                raise ToolError(f"Unknown {METADATA_VERSION} {level}")
            print(f"{name}={level} ({metadata_version_name(level)}) has no dependencies.")
            continue
        _show_dependencies(name, level)


def _show_dependencies(name: str, level: int) -> None:
    if name not in PRODUCTION_FEATURES:
        raise ToolError(f"Unknown feature: {name}")
    requires = FEATURES[name].requires
    if not 0 <= level < len(requires):
        raise ToolError(f"No feature:{name} with feature level {level}")
    if requires[level] == MIN_METADATA_VERSION:
        print(f"{name}={level} has no dependencies.")
        return
    print(f"{name}={level} requires:")
    print(f"    {METADATA_VERSION}={requires[level]} ({metadata_version_name(requires[level])})")
