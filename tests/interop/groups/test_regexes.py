"""Regular expressions of subscriptions match and are refused as by Kafka's RE2/J, with the same messages."""

from __future__ import annotations

import pytest

from moldau.base.errors import KafkaError
from moldau.groups.modern.regex import check_regex, resolve_regexes
from moldau.metadata.image import MetadataImage, TopicImage, TopicsImage
from moldau.statemachine.effects import ResolveRegexes
from tests.interop.java_oracle import ask_java

pytestmark = pytest.mark.interop

VALID = [
    *(
        "orders.*",
        "orders",
        "(?i)ORDERS-\\d",
        "a|orders-1",
        "\\Qorders-1\\E",
        "[^b]+",
        "(?i)x",
        ".",
        ".*-1",
        "^orders-1$",
    ),
]
INVALID = [
    *("a(", "[", "a**", "x{1001}", "\\8", "a\\", "(?=a)", "*a", "[z-a]", "[[:foo:]]", "\\pX", "(?z)", "é("),
    *("(?P<n", "x{2,1}", "(a", "[a", "(?P<=a>b)"),
]


def test_valid_patterns_match_like_re2j() -> None:
    topic = TopicImage(bytes(16), "orders-1")
    image = MetadataImage(topics=TopicsImage({topic.id: topic}, {topic.name: topic}))
    found = resolve_regexes(ResolveRegexes("g", tuple(VALID), image.topics.by_name, image.offset, 0))
    said = ask_java("Regexes", VALID)
    assert [["matches", str(bool(found[regex].topics)).lower()] for regex in VALID] == said


def test_invalid_patterns_are_refused_with_the_same_message() -> None:
    said = ask_java("Regexes", INVALID)
    for regex, (verdict, reason) in zip(INVALID, said, strict=True):
        with pytest.raises(KafkaError) as refused:
            check_regex(regex)
        assert (verdict, f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.") == (
            "wrong",
            refused.value.message,
        )
