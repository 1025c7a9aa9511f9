"""kafka-features: describe, upgrade, downgrade and disable the features of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.kafka.features.levels import (
    PRODUCTION_FEATURES,
    default_level,
    level_text,
    parse_level,
    parse_version,
    show_dependencies,
    show_mapping,
)
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.connection import add_either_bootstrap, open_admin_of_either
from moldau.cli.shared.tool import ToolError, run_tool
from moldau.metadata.features import METADATA_VERSION

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.features import FeatureUpdate, UpgradeType

_RELEASE = "Set all features to the levels of this release (4.3) or metadata version (4.3-IV0)."
_LEVEL = "A feature and its level, such as metadata.version=30. May be repeated."
_DRY_RUN = "Validate the change without making it."
_UNSAFE = "Make the change even if metadata may be lost."


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-features")
    add_either_bootstrap(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=ToolParser
    )
    describe = _command(commands, "describe", "Show the supported and the finalized levels of features.")
    describe.option("--node-id", "ID", "Send the request to this node instead of any.", type=int)
    for name in ("upgrade", "downgrade"):
        change = _command(commands, name, f"{name.title()} features.")
        change.option("--metadata", "VERSION", "DEPRECATED: the metadata.version, such as 4.3-IV0.")
        change.option("--release-version", "VERSION", _RELEASE)
        change.option("--feature", "NAME=LEVEL", _LEVEL, action="append")
        change.flag("--dry-run", _DRY_RUN)
        if name == "downgrade":
            change.flag("--unsafe", _UNSAFE)
    disable = _command(commands, "disable", "Disable features, which is a downgrade to level 0.")
    disable.option("--feature", "NAME", "A feature. May be repeated.", action="append")
    disable.flag("--unsafe", _UNSAFE)
    disable.flag("--dry-run", _DRY_RUN)
    mapping = _command(commands, "version-mapping", "Show the feature levels of a release.")
    mapping.option("--release-version", "VERSION", "The release; the latest by default.")
    dependencies = _command(commands, "feature-dependencies", "Show the dependencies of feature levels.")
    dependencies.option("--feature", "NAME=LEVEL", _LEVEL, action="append", required=True)
    return parser


def _command(commands: argparse._SubParsersAction[ToolParser], name: str, text: str) -> ToolParser:
    return commands.add_parser(name, description=text, help=text)


def _execute(options: argparse.Namespace) -> None:
    if options.command == "version-mapping":
        show_mapping(options.release_version)
        return
    if options.command == "feature-dependencies":
        show_dependencies(map(parse_level, options.feature))
        return
    if options.bootstrap_server and options.bootstrap_controller:
        raise UsageError("argument --bootstrap-controller: not allowed with argument --bootstrap-server")
    if not options.bootstrap_server and not options.bootstrap_controller:
        raise UsageError("You must specify either --bootstrap-controller or --bootstrap-server.")
    with open_admin_of_either(options) as admin:
        if options.command == "describe":
            _describe(admin, options.node_id)
        elif options.command == "disable":
            _update(admin, "disable", _disabled(options), dry_run=options.dry_run)
        else:
            _update(admin, options.command, _changed(admin, options), dry_run=options.dry_run)


def _describe(admin: AdminClient, node: int | None) -> None:
    if node is not None and node < 0:
        raise ToolError(f"Invalid node id {node}: must be non-negative.")
    described = admin.describe_features(node)
    epoch = described.epoch if described.epoch >= 0 else "-"
    for name, levels in sorted(described.supported.items()):
        print(
            f"Feature: {name:<40}  SupportedMinVersion: {level_text(name, levels.lowest):<15}  "
            f"SupportedMaxVersion: {level_text(name, levels.highest):<15}  "
            f"FinalizedVersionLevel: {level_text(name, described.finalized.get(name, 0)):<15}  Epoch: {epoch}"
        )


def _type(options: argparse.Namespace) -> UpgradeType:
    from moldau.client.admin.features import UpgradeType

    if options.command == "upgrade":
        return UpgradeType.UPGRADE
    return UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE


def _changed(admin: AdminClient, options: argparse.Namespace) -> dict[str, FeatureUpdate]:
    from moldau.client.admin.features import FeatureUpdate

    if options.release_version is not None:
        if options.metadata is not None or options.feature is not None:
            raise ToolError("Can not specify `release-version` with other feature flags.")
        return _released(admin, options)
    kind, updates = _type(options), {}
    if options.metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        updates[METADATA_VERSION] = FeatureUpdate(parse_version(options.metadata), kind)
    for name, level in map(parse_level, options.feature or []):
        if name in updates:
            raise ToolError(f"Feature {name} was specified more than once.")
        updates[name] = FeatureUpdate(level, kind)
    return updates


def _released(admin: AdminClient, options: argparse.Namespace) -> dict[str, FeatureUpdate]:
    """Return updates to the levels of a release for the features that the cluster supports."""
    from moldau.client.admin.features import FeatureUpdate, UpgradeType

    kind, version = _type(options), parse_version(options.release_version)
    known = admin.describe_features().supported
    updates = {METADATA_VERSION: FeatureUpdate(version, kind)}
    for name in PRODUCTION_FEATURES:
        level = default_level(name, version)
        if name in known and (level > 0 or kind is not UpgradeType.UPGRADE):
            updates[name] = FeatureUpdate(level, kind)
    return updates


def _disabled(options: argparse.Namespace) -> dict[str, FeatureUpdate]:
    from moldau.client.admin.features import FeatureUpdate

    names = options.feature or []
    for name in names:
        if names.count(name) > 1:
            raise ToolError(f"Feature {name} was specified more than once.")
    return dict.fromkeys(names, FeatureUpdate(0, _type(options)))


def _update(admin: AdminClient, action: str, updates: dict[str, FeatureUpdate], *, dry_run: bool) -> None:
    if not updates:
        raise ToolError(f"You must specify at least one feature to {action}")
    results = admin.update_features(updates, validate_only=dry_run)
    failures = 0
    for name, error in sorted(results.items()):
        to_level = "" if action == "disable" else f" to {updates[name].level}"
        if error is not None:
            failures += 1
            print(f"{'Can not' if dry_run else 'Could not'} {action} {name}{to_level}. {error}")
        else:
            print(f"{name} {'can be' if dry_run else 'was'} {action}d{to_level}.")
    if failures:
        raise ToolError(f"{failures} out of {len(updates)} operation(s) failed.")
