"""`meta.properties`: the cluster, node and directory id of a folder.

Every folder of a node has this file; KRaft writes version 1. `load_folders` reads the files of all folders,
`check_folders` checks that they belong together. Formatting writes it last: a folder without it is not
formatted, whatever else it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.ids import DirectoryId, format_uuid, parse_uuid
from moldau.config.properties import PropertiesError, format_properties, parse_properties
from moldau.storage.disk.disk import Disk

FILE_NAME = "meta.properties"


class UnusableFolder(Exception):
    """A folder cannot be used; the message names the folder, the reason and the remedy."""


class MetaProperties(NamedTuple):
    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: DirectoryId | None

    def to_properties(self) -> dict[str, str]:
        """Return the properties in the order of Kafka's files."""
        known = {
            "node.id" if self.version else "broker.id": None if self.node_id is None else str(self.node_id),
            "directory.id": None if self.directory_id is None else format_uuid(self.directory_id),
            "version": str(self.version),
            "cluster.id": self.cluster_id,
        }
        return {name: value for name, value in known.items() if value is not None}


class Folders(NamedTuple):
    """The folders of a node by their state."""

    formatted: dict[str, MetaProperties]
    unformatted: tuple[str, ...]
    #: Unreadable folders and the reasons.
    failed: dict[str, str]


def path_of(directory: str) -> str:
    return f"{directory}/{FILE_NAME}"


def parse_meta_properties(properties: Mapping[str, str]) -> MetaProperties:
    """Parse the properties; raise `UnusableFolder` if one is missing or invalid."""
    version = properties.get("version", "0")
    if version not in ("0", "1"):
        raise UnusableFolder(f"Unknown meta.properties version number {version}")
    if version == "0":
        node_id = _number(properties, "broker.id") if "broker.id" in properties else None
        return MetaProperties(0, properties.get("cluster.id"), node_id, _directory_id(properties))
    if "cluster.id" not in properties:
        raise UnusableFolder("Failed to find cluster.id")
    return MetaProperties(
        1, properties["cluster.id"], _number(properties, "node.id"), _directory_id(properties)
    )


def _number(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name)
    if text is None:
        raise UnusableFolder(f"Failed to find {name}")
    if not re.fullmatch(r"[+-]?\d{1,10}", text):
        raise UnusableFolder(f"Unable to read {name} as a base-10 number.")
    return int(text)


def _directory_id(properties: Mapping[str, str]) -> DirectoryId | None:
    text = properties.get("directory.id")
    if text is None:
        return None
    try:
        return parse_uuid(text)
    except ValueError as error:
        raise UnusableFolder(f"Unable to read directory.id: {error}") from error


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """Read the file; return None if the folder is not formatted, raise `OSError` if the disk fails."""
    try:
        text = disk.read_bytes(path_of(directory)).decode("latin-1")
    except FileNotFoundError:
        return None
    try:
        return parse_meta_properties(parse_properties(text))
    except PropertiesError as error:
        raise UnusableFolder(str(error)) from error


def write_meta_properties(disk: Disk, clock: Clock, directory: str, properties: MetaProperties) -> None:
    text = format_properties(properties.to_properties(), "", clock.time_ms())
    disk.write_atomic(path_of(directory), text.encode("ascii"))


def load_folders(disk: Disk, directories: Iterable[str]) -> Folders:
    """Read all folders. An invalid `meta.properties` is an error; a failing disk affects only its folder."""
    formatted: dict[str, MetaProperties] = {}
    unformatted = []
    failed: dict[str, str] = {}
    for directory in directories:
        try:
            properties = read_meta_properties(disk, directory)
        except UnusableFolder as error:
            raise UnusableFolder(f"Error loading {path_of(directory)}: {error}") from error
        except OSError as error:
            failed[directory] = error.strerror or str(error)
            continue
        if properties is None:
            unformatted.append(directory)
        else:
            formatted[directory] = properties
    return Folders(formatted, tuple(unformatted), failed)


def check_folders(folders: Folders, node_id: int, cluster_id: str | None = None) -> str | None:
    """Return the cluster id; raise `UnusableFolder` unless all belong to this node and one cluster."""
    expected = cluster_id
    owners: dict[DirectoryId, str] = {}
    for directory, properties in folders.formatted.items():
        path = path_of(directory)
        if properties.cluster_id is not None:
            expected = expected or properties.cluster_id
            if properties.cluster_id != expected:
                raise UnusableFolder(
                    f"Invalid cluster.id in: {path}. Expected {expected}, but read {properties.cluster_id}"
                )
        if properties.node_id not in (None, node_id):
            raise UnusableFolder(
                f"Stored node id {properties.node_id} doesn't match previous node id {node_id} in {path}. "
                "If you moved your data, make sure your configured node id matches. If you intend to "
                "create a new node, you should remove all data in your data directories."
            )
        _check_directory_id(path, properties.directory_id, owners)
    return expected


def _check_directory_id(path: str, directory_id: DirectoryId | None, owners: dict[DirectoryId, str]) -> None:
    if directory_id is None:
        return
    if directory_id in owners:
        raise UnusableFolder(
            f"{path} and {owners[directory_id]} have the same directory.id {format_uuid(directory_id)}; one "
            "folder is a copy of the other. Remove the copy."
        )
    if not any(directory_id[:8]) and int.from_bytes(directory_id[8:], "big") < 100:
        raise UnusableFolder(f"{path} has the reserved directory.id {format_uuid(directory_id)}.")
    owners[directory_id] = path
