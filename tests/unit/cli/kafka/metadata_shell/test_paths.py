"""Paths and patterns."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.metadata_shell.paths import components, find, glob_matcher
from moldau.cli.kafka.metadata_shell.tree import Root
from moldau.metadata.image import MetadataImage


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("a*", ["a", "abc"], ["ba"]),
        ("a?c", ["abc"], ["ac", "abbc"]),
        ("{ab,cd}*", ["ab", "cdx"], ["a", "bcd"]),
        ("a.*", ["a.x"], ["abx"]),
        (r"\*?", ["*a"], ["ba"]),
    ],
)
def test_glob_patterns_match_names(glob: str, matching: list[str], other: list[str]) -> None:
    matches = glob_matcher(glob)
    assert matches is not None
    assert all(map(matches, matching))
    assert not any(map(matches, other))


@pytest.mark.parametrize("glob", ["orders", "a.b", "a,b", "{a", "{a,{b}}", "a}"])
def test_component_without_pattern_has_no_matcher(glob: str) -> None:
    assert glob_matcher(glob) is None


def test_dots_in_paths_are_resolved() -> None:
    assert components("a/./b//../c", "/x") == ["x", "a", "c"]
    assert components("/../..") == []


def test_found_nodes_have_absolute_paths(image: MetadataImage) -> None:
    root = Root(image, 0).directory()
    assert [each.absolute for each in find(root, "/image/topics/*")] == [
        "/image/topics/byId",
        "/image/topics/byName",
    ]
    assert find(root, "/")[0].name == "/"
