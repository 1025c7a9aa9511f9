"""A voter as its properties file describes it: id, directory id and listeners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.cli.shared.tool import ToolError
from moldau.client.admin.quorum import VoterListener
from moldau.config.definition import ConfigError
from moldau.config.listeners import parse_endpoints
from moldau.server.startup.meta_properties import UnusableFolder, read_meta_properties
from moldau.storage.disk.disk import PosixDisk

_HINT = "Is this a valid controller configuration file?"


class ControllerProperties(NamedTuple):
    id: int
    directory_id: Uuid
    listeners: tuple[VoterListener, ...]


def controller_of(properties: Mapping[str, str]) -> ControllerProperties:
    """Return the controller of a properties file; its metadata log directory must be formatted."""
    node_id = _node_id(properties)
    return ControllerProperties(node_id, _directory_id(_directory(properties)), _listeners(properties))


def _node_id(properties: Mapping[str, str]) -> int:
    text = properties.get("node.id")
    if text is None:
        raise ToolError(f"node.id not found in configuration file. {_HINT}")
    try:
        node_id = int(text)
    except ValueError:
        raise ToolError(f'node.id is not a number in configuration file: "{text}". {_HINT}') from None
    if node_id < 0:
        raise ToolError(f"node.id was negative in configuration file. {_HINT}")
    if "controller" not in properties.get("process.roles", ""):
        raise ToolError(f"process.roles did not contain 'controller' in configuration file. {_HINT}")
    return node_id


def _directory(properties: Mapping[str, str]) -> str:
    if "metadata.log.dir" in properties:
        return properties["metadata.log.dir"]
    first = properties.get("log.dirs", "").strip().split(",")[0]
    if not first:
        raise ToolError(f"Neither metadata.log.dir nor log.dirs were found. {_HINT}")
    return first


def _directory_id(directory: str) -> Uuid:
    try:
        found = read_meta_properties(PosixDisk(), directory)
    except (UnusableFolder, OSError) as error:
        raise ToolError(f"Unable to read meta.properties from {directory}: {error}") from error
    if found is None:
        raise ToolError(f"Unable to read meta.properties from {directory}")
    if found.directory_id is None:
        raise ToolError(f"No directory id found in {directory}")
    return found.directory_id


def _listeners(properties: Mapping[str, str]) -> tuple[VoterListener, ...]:
    known: dict[str, VoterListener] = {}
    for setting in ("listeners", "advertised.listeners"):
        texts = [text.strip() for text in properties.get(setting, "").split(",") if text.strip()]
        protocols = {text.partition(":")[0].upper(): "PLAINTEXT" for text in texts}
        try:
            endpoints = parse_endpoints(setting, texts, protocols)
        except ConfigError as error:
            raise ToolError(str(error)) from error
        for endpoint in endpoints:
            known[endpoint.name] = VoterListener(endpoint.name, endpoint.host or "localhost", endpoint.port)
    if "controller.listener.names" not in properties:
        raise ToolError(f"controller.listener.names was not found. {_HINT}")
    names = [name.strip().upper() for name in properties["controller.listener.names"].split(",")]
    for name in names:
        if name not in known:
            raise ToolError(f"Cannot find information about controller listener name: {name}")
    return tuple(known[name] for name in names)
