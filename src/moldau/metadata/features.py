"""Feature levels (KIP-584): what each `metadata.version` allows, and the levels that this release supports.

A finalized level is part of the metadata (FeatureLevelRecord). `metadata.version` determines which records
may be written and in which version (`records.record_version`); the other features enable protocols for
clients.

`FEATURES` is the table of all features. `served` is the highest level whose protocol is implemented: `format`
writes it, and an update may raise a feature up to it. `known` is the highest level that is accepted in a
folder formatted by Apache Kafka, which keeps its levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"

#: The metadata versions that Kafka 4.3 supports; the first has level 7.
_VERSION_NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
)
MIN_METADATA_VERSION = 7
MAX_METADATA_VERSION = MIN_METADATA_VERSION + len(_VERSION_NAMES) - 1
#: Levels that changed the stored records: a downgrade below one of them would lose metadata.
_STORED_FORMAT_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})

# The first metadata version that supports each feature.
SCRAM_SUPPORTED = 11
#: Below this level, shrinking an ISR increments the leader epoch.
NO_EPOCH_BUMP_ON_ISR_SHRINK = 12
TRANSACTIONS_SUPPORTED = 13
DELEGATION_TOKENS_SUPPORTED = 14
CONTROLLER_REGISTRATION_SUPPORTED = 15
DIRECTORY_ASSIGNMENT_SUPPORTED = 17
ELR_SUPPORTED = 23
CORDONED_DIRECTORIES_SUPPORTED = 30


class VersionRange(NamedTuple):
    """The levels that a node supports, inclusive."""

    min: int
    max: int

    def supports(self, level: int) -> bool:
        return self.min <= level <= self.max

    def __str__(self) -> str:
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"


class Feature(NamedTuple):
    name: str
    min: int
    served: int
    known: int
    #: By level: the metadata version from which the level is the default.
    bootstrap: tuple[int, ...]
    #: By level: the lowest metadata version that the level requires.
    requires: tuple[int, ...]


_MIN = MIN_METADATA_VERSION
FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature(METADATA_VERSION, _MIN, MAX_METADATA_VERSION, MAX_METADATA_VERSION, (), ()),
        Feature(KRAFT_VERSION, 0, 1, 1, (_MIN, 21), (_MIN, _MIN)),
        Feature(ELR_VERSION, 0, 1, 1, (_MIN, 26), (_MIN, ELR_SUPPORTED)),
        Feature(GROUP_VERSION, 0, 1, 1, (_MIN, 22), (_MIN, _MIN)),
        Feature(SHARE_VERSION, 0, 1, 1, (_MIN, 28), (_MIN, _MIN)),
        Feature(STREAMS_VERSION, 0, 1, 1, (_MIN, 29), (_MIN, _MIN)),
        Feature(TRANSACTION_VERSION, 0, 2, 2, (_MIN, 24, 24), (_MIN, _MIN, _MIN)),
    )
}


def metadata_version_name(level: int) -> str:
    """Return the name of a level, such as 4.3-IV0; raise ValueError for an unsupported level."""
    if not MIN_METADATA_VERSION <= level <= MAX_METADATA_VERSION:
        raise ValueError(
            f"metadata.version {level} is not supported: the levels are "
            f"{MIN_METADATA_VERSION} ({_VERSION_NAMES[0]}) to {MAX_METADATA_VERSION} ({_VERSION_NAMES[-1]})"
        )
    return _VERSION_NAMES[level - MIN_METADATA_VERSION]


def parse_metadata_version(text: str) -> int:
    """Return the level of a name such as "4.3-IV0", or the latest level of a release such as "4.3"; raise
    ValueError for other texts."""
    matches = [
        level
        for level, name in enumerate(_VERSION_NAMES, MIN_METADATA_VERSION)
        if text in (name, name.partition("-")[0])
    ]
    release = ".".join(text.split(".")[:2])
    if not matches and text.count(".") == 2 and release != text:
        return parse_metadata_version(release)
    if not matches:
        known = ", ".join(_VERSION_NAMES)
        raise ValueError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}")
    return matches[-1]


def metadata_would_be_lost(current: int, target: int) -> bool:
    """Whether a downgrade from `current` to `target` crosses a change of the stored records."""
    return any(target < level <= current for level in _STORED_FORMAT_CHANGES)


def default_levels(metadata_version: int = MAX_METADATA_VERSION) -> dict[str, int]:
    """Return the levels that `format` writes: for each feature, the default of the metadata version, limited
    to the served level.

    `kraft.version` is not included; it depends on whether the quorum is formatted as static or dynamic.
    """
    levels = {METADATA_VERSION: metadata_version}
    for feature in FEATURES.values():
        if feature.name not in (METADATA_VERSION, KRAFT_VERSION):
            level = max(at for at, since in enumerate(feature.bootstrap) if since <= metadata_version)
            levels[feature.name] = min(level, feature.served)
    return levels


def supported_features(finalized: Mapping[str, int]) -> dict[str, VersionRange]:
    """Return the levels that this node advertises: those it serves and those the cluster has finalized."""
    return {
        feature.name: VersionRange(feature.min, max(feature.served, finalized.get(feature.name, 0)))
        for feature in FEATURES.values()
        if max(feature.served, finalized.get(feature.name, 0)) > 0
    }


def missing_requirement(name: str, level: int, metadata_version: int) -> str | None:
    """Return why a level cannot be set with this metadata version; None if it can."""
    feature = FEATURES[name]
    if not 0 <= level < len(feature.requires):
        return f"No feature:{name} with feature level {level}"
    required = feature.requires[level]
    if metadata_version < required:
        return f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {required}"
    return None
