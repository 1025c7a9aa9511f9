"""The initial feature levels of a cluster, and the text that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.metadata.features import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    default_levels,
    metadata_version_name,
    missing_requirement,
    parse_metadata_version,
)
from moldau.metadata.records import MetadataRecord
from moldau.protocol.stored.metadata import FeatureLevelRecord, UserScramCredentialRecord


class FormatError(Exception):
    """The folders cannot be formatted; the message names the reason."""


def choose_levels(release: str | None, asked: Mapping[str, int], *, dynamic: bool) -> dict[str, int]:
    """Return the default levels of a release with the requested changes.

    `kraft.version` is not included: the kind of quorum determines it, and a requested level is only checked.
    """
    others = {name: level for name, level in asked.items() if name != METADATA_VERSION}
    version = _metadata_version(release, asked.get(METADATA_VERSION))
    for name in others:
        if name not in FEATURES:
            known = ", ".join(sorted(known for known in FEATURES if known != METADATA_VERSION))
            raise FormatError(f"Unsupported feature: {name}. Supported features are: {known}")
    _check_kraft_version(others.get(KRAFT_VERSION), dynamic=dynamic)
    levels = {**default_levels(version), **others}
    for name, level in levels.items():
        problem = None if name == METADATA_VERSION else missing_requirement(name, level, version)
        if problem is not None:
            raise FormatError(problem)
    levels.pop(KRAFT_VERSION, None)
    return levels


def _metadata_version(release: str | None, asked: int | None) -> int:
    if asked is not None and release is not None:
        raise FormatError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    try:
        if asked is not None:
            metadata_version_name(asked)
            return asked
        return default_levels()[METADATA_VERSION] if release is None else parse_metadata_version(release)
    except ValueError as error:
        raise FormatError(str(error)) from error


def _check_kraft_version(asked: int | None, *, dynamic: bool) -> None:
    condition = (
        "controller.quorum.voters is empty and one of the flags --standalone, --initial-controllers, or "
        "--no-initial-controllers is used. For dynamic controllers support, try"
    )
    if asked == 0 and dynamic:
        raise FormatError(
            f"Cannot set kraft.version to 0 if {condition} removing the --feature flag for kraft.version."
        )
    if asked and not dynamic:
        raise FormatError(
            f"Cannot set kraft.version to {asked} unless {condition} using one of --standalone, "
            "--initial-controllers, or --no-initial-controllers and removing controller.quorum.voters."
        )


def describe_bootstrap(metadata_version: int, records: Sequence[MetadataRecord]) -> str:
    """Return Kafka's output line with the bootstrap metadata; unlike Kafka's, without keys of users."""
    listed = ", ".join(f"ApiMessageAndVersion({_described(record)} at version 0)" for record in records)
    return (
        f"Bootstrap metadata: BootstrapMetadata(records=[{listed}], "
        f"metadataVersionLevel={metadata_version}, source=format command)"
    )


def _described(record: MetadataRecord) -> str:
    if isinstance(record, FeatureLevelRecord):
        return f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level})"
    if isinstance(record, UserScramCredentialRecord):
        return (
            f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, salt=[hidden], "
            f"storedKey=[hidden], serverKey=[hidden], iterations={record.iterations})"
        )
    return type(record).__name__
