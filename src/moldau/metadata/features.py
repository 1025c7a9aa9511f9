"""Feature levels: which `metadata.version` allows what, and how far this release goes with each feature.

A finalized level is part of the metadata (a FeatureLevelRecord). `metadata.version` decides which records may
be written and in which version (`records.record_version`); the others switch protocols on for clients.

`FEATURES` is the one table. `served` is the highest level whose protocol we really serve: `format` writes it,
and an update may raise a feature up to it. `known` is the highest level we can live with: a folder formatted
by Apache Kafka keeps its levels. Raising `served` is all it takes when a protocol is finished.
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

#: Names of the metadata versions, from the oldest that Kafka 4.3 still reads; the first has level 7.
_VERSION_NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
)
MIN_METADATA_VERSION = 7
MAX_METADATA_VERSION = MIN_METADATA_VERSION + len(_VERSION_NAMES) - 1
#: Levels that changed what is stored: going back below one of them would lose metadata.
_STORED_FORMAT_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})

# The first metadata version with each ability.
SCRAM_SUPPORTED = 11
#: Below this level shrinking an ISR raises the leader epoch.
NO_EPOCH_BUMP_ON_ISR_SHRINK = 12
TRANSACTIONS_SUPPORTED = 13
DELEGATION_TOKENS_SUPPORTED = 14
CONTROLLER_REGISTRATION_SUPPORTED = 15
DIRECTORY_ASSIGNMENT_SUPPORTED = 17
ELR_SUPPORTED = 23
CORDONED_DIRECTORIES_SUPPORTED = 30


class VersionRange(NamedTuple):
    """Levels a node supports, both ends included."""

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
    #: The metadata version from which a level is on by default, by level.
    bootstrap: tuple[int, ...]
    #: Lowest metadata version each level needs, by level.
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
        Feature(STREAMS_VERSION, 0, 0, 1, (_MIN, 29), (_MIN, _MIN)),
        Feature(TRANSACTION_VERSION, 0, 2, 2, (_MIN, 24, 24), (_MIN, _MIN, _MIN)),
    )
}


def metadata_version_name(level: int) -> str:
    """The name people know, such as 4.3-IV0; ValueError for a level this release does not know."""
    if not MIN_METADATA_VERSION <= level <= MAX_METADATA_VERSION:
        raise ValueError(
            f"metadata.version {level} is not supported: the levels are "
            f"{MIN_METADATA_VERSION} ({_VERSION_NAMES[0]}) to {MAX_METADATA_VERSION} ({_VERSION_NAMES[-1]})"
        )
    return _VERSION_NAMES[level - MIN_METADATA_VERSION]


def parse_metadata_version(text: str) -> int:
    """The level of "4.3-IV0", or of a release such as "4.3" (its last one); ValueError for anything else."""
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
    """Whether going down from `current` to `target` crosses a change of what is stored."""
    return any(target < level <= current for level in _STORED_FORMAT_CHANGES)


def default_levels(metadata_version: int = MAX_METADATA_VERSION) -> dict[str, int]:
    """What `format` writes for a metadata version: each feature as far as that version and this release go.

    `kraft.version` is not among them: it follows from how the quorum is formatted.
    """
    levels = {METADATA_VERSION: metadata_version}
    for feature in FEATURES.values():
        if feature.name not in (METADATA_VERSION, KRAFT_VERSION):
            level = max(at for at, since in enumerate(feature.bootstrap) if since <= metadata_version)
            levels[feature.name] = min(level, feature.served)
    return levels


def supported_features(finalized: Mapping[str, int]) -> dict[str, VersionRange]:
    """What this node announces: the levels it serves, and those the cluster has finalized already."""
    return {
        feature.name: VersionRange(feature.min, max(feature.served, finalized.get(feature.name, 0)))
        for feature in FEATURES.values()
        if max(feature.served, finalized.get(feature.name, 0)) > 0
    }


def missing_requirement(name: str, level: int, metadata_version: int) -> str | None:
    """Why a feature may not have this level with this metadata version; None when it may."""
    feature = FEATURES[name]
    if not 0 <= level < len(feature.requires):
        return f"No feature:{name} with feature level {level}"
    required = feature.requires[level]
    if metadata_version < required:
        return f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {required}"
    return None
