"""Patterns for topics to consume."""

from __future__ import annotations

from moldau.cli.kafka.console.reading import Pattern, ReadPlan


def test_pattern_excludes_internal_topics_by_default() -> None:
    def pattern(text: str, **properties: str) -> Pattern:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return Pattern(ReadPlan(None, text, None, "earliest", "g", named))

    assert pattern(r"or\w+").allows("orders")
    assert not pattern("or").allows("orders")
    assert not pattern(".*").allows("__consumer_offsets")
    assert pattern(".*", exclude_internal_topics="false").allows("__consumer_offsets")
