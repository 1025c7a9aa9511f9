"""Feature levels and metadata versions."""

from __future__ import annotations

import pytest

from moldau.metadata import features
from moldau.metadata.features import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    VersionRange,
    default_levels,
    metadata_version_name,
    metadata_would_be_lost,
    missing_requirement,
    parse_metadata_version,
    supported_features,
)


def test_metadata_version_names_and_levels_correspond() -> None:
    assert metadata_version_name(7) == "3.3-IV3"
    assert metadata_version_name(17) == "3.7-IV2"
    assert metadata_version_name(23) == "4.0-IV1"
    assert metadata_version_name(30) == "4.3-IV0"
    for level in range(7, 31):
        assert parse_metadata_version(metadata_version_name(level)) == level


@pytest.mark.parametrize("level", [-1, 0, 6, 31])
def test_unsupported_level_error_names_the_supported_range(level: int) -> None:
    with pytest.raises(ValueError, match=r"7 \(3.3-IV3\) to 30 \(4.3-IV0\)"):
        metadata_version_name(level)


@pytest.mark.parametrize(
    ("text", "level"), [("4.3", 30), ("4.3.0", 30), ("4.0", 25), ("3.7", 19), ("3.3", 7)]
)
def test_release_name_maps_to_its_latest_level(text: str, level: int) -> None:
    assert parse_metadata_version(text) == level


@pytest.mark.parametrize("text", ["", "2.8", "4.9", "4", "4.3-IV9", "x"])
def test_unknown_release_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"Unknown metadata.version .*3.3-IV3.*4.3-IV0"):
        parse_metadata_version(text)


def test_downgrade_across_a_record_format_change_loses_metadata() -> None:
    assert not metadata_would_be_lost(29, 24)
    assert metadata_would_be_lost(30, 29)
    assert metadata_would_be_lost(24, 22)
    assert not metadata_would_be_lost(22, 22)


def test_default_levels_are_limited_to_served_levels() -> None:
    levels = default_levels()
    assert levels[METADATA_VERSION] == 30
    assert levels[ELR_VERSION] == 1
    assert levels[GROUP_VERSION] == 1
    assert levels[SHARE_VERSION] == 1
    assert levels[STREAMS_VERSION] == 1
    assert features.KRAFT_VERSION not in levels


def test_default_levels_of_an_older_metadata_version_omit_later_features() -> None:
    assert default_levels(25)[ELR_VERSION] == 0


def test_finalized_levels_are_advertised() -> None:
    assert supported_features({})[STREAMS_VERSION] == VersionRange(0, 1)
    assert supported_features({STREAMS_VERSION: 1})[STREAMS_VERSION] == VersionRange(0, 1)
    assert supported_features({})[METADATA_VERSION] == VersionRange(7, 30)


def test_feature_level_requires_a_metadata_version() -> None:
    assert missing_requirement(ELR_VERSION, 1, 30) is None
    assert "depends on metadata.version level 23" in (missing_requirement(ELR_VERSION, 1, 22) or "")
    assert missing_requirement(ELR_VERSION, 2, 30) == f"No feature:{ELR_VERSION} with feature level 2"
