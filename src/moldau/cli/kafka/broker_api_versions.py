"""kafka-broker-api-versions: show the API versions of each broker, and the one that this client uses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.shared.arguments import ToolParser
from moldau.cli.shared.connection import add_bootstrap_options, open_admin
from moldau.cli.shared.java import java_boolean
from moldau.cli.shared.tool import run_tool

if TYPE_CHECKING:
    from moldau.client.admin.nodes import NodeDescription
    from moldau.network.client import VersionRange
    from moldau.protocol.apis import Api


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-broker-api-versions")
    add_bootstrap_options(parser)
    return parser


def _execute(options: argparse.Namespace) -> None:
    with open_admin(options) as admin:
        for node, versions in admin.node_versions().items():
            if isinstance(versions, KafkaError):
                print(f"{_node(node)} -> ERROR: {versions}")
            else:
                print(f"{_node(node)} -> {_table(versions)}")


def _node(node: NodeDescription) -> str:
    fenced = java_boolean(node.fenced)
    return f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'} isFenced: {fenced})"


def _table(versions: dict[int, VersionRange]) -> str:
    from moldau.protocol.apis import APIS

    lines = {key: _line(APIS.get(key), key, supported) for key, supported in versions.items()}
    for api in APIS.values():
        if "broker" in api.listeners and api.key not in lines:
            lines[api.key] = f"{api.name}({api.key}): UNSUPPORTED"
    return "(\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)"


def _line(api: Api | None, key: int, supported: VersionRange) -> str:
    low, high = supported
    versions = str(low) if low == high else f"{low} to {high}"
    if api is None:
        return f"UNKNOWN({key}): {versions}"
    if api.max_version < low:
        note = "unusable: node too new"
    elif high < api.min_version:
        note = "unusable: node too old"
    else:
        note = f"usable: {min(api.max_version, high)}"
    return f"{api.name}({key}): {versions} [{note}]"
