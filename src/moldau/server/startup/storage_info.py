"""The output of `kafka-storage info` about the folders of a node."""

from __future__ import annotations

from typing import NamedTuple

from moldau.config.broker.config import BrokerConfig
from moldau.server.startup.meta_properties import (
    MetaProperties,
    UnusableFolder,
    path_of,
    read_meta_properties,
)
from moldau.storage.disk.disk import Disk


class StorageInfo(NamedTuple):
    """The output of the command; it fails if there are `problems`."""

    text: str
    problems: tuple[str, ...]


def storage_info(disk: Disk, config: BrokerConfig) -> StorageInfo:
    found: list[str] = []
    problems: list[str] = []
    first: MetaProperties | None = None
    for directory in config.directories:
        if not disk.is_dir(directory):
            problems.append(
                f"{directory} {'is not a directory' if disk.exists(directory) else 'does not exist'}"
            )
            continue
        found.append(directory)
        properties = _read(disk, directory, problems)
        if properties is not None:
            first = first or properties
            _compare(first, properties, problems)
    if first is not None and first.version == 0:
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are "
            "formatted for legacy mode."
        )
    return StorageInfo(_text(found, first, problems), tuple(problems))


def _read(disk: Disk, directory: str, problems: list[str]) -> MetaProperties | None:
    try:
        properties = read_meta_properties(disk, directory)
    except UnusableFolder as error:
        problems.append(f"Error loading {path_of(directory)}: {error}")
        return None
    except OSError as error:
        problems.append(f"Error loading {path_of(directory)}: {error.strerror or error}")
        return None
    if properties is None:
        problems.append(f"{directory} is not formatted.")
    return properties


def _compare(first: MetaProperties, other: MetaProperties, problems: list[str]) -> None:
    if first.cluster_id != other.cluster_id:
        problems.append("Mismatched cluster IDs between storage directories.")
    elif first.node_id != other.node_id:
        problems.append("Mismatched node IDs between storage directories.")


def _text(found: list[str], properties: MetaProperties | None, problems: list[str]) -> str:
    lines = _listed("Found log directory:", "Found log directories:", found)
    if properties is not None:
        shown = ", ".join(f"{name}={value}" for name, value in sorted(properties.to_properties().items()))
        lines += [f"Found metadata: {{{shown}}}", ""]
    lines += _listed("Found problem:", "Found problems:", problems)
    return "".join(f"{line}\n" for line in lines)


def _listed(one: str, several: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    return [one if len(entries) == 1 else several, *(f"  {entry}" for entry in entries), ""]
