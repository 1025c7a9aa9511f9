"""Markers of pipelines are told from positions."""

from __future__ import annotations

from moldau.groups.offsets.markers import is_marker
from moldau.pipelines.sink.markers import Marker


def test_what_the_sink_of_a_pipeline_commits_is_a_marker() -> None:
    assert is_marker(Marker(7, "run", "write").stored(2).metadata)


def test_metadata_of_consumers_are_none() -> None:
    for metadata in (None, "", "{}", '{"rows":1}', "host-1"):
        assert not is_marker(metadata)
