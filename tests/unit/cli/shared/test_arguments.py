from __future__ import annotations

from argparse import Namespace

import pytest

from moldau.cli.shared.arguments import (
    ToolParser,
    TopicPattern,
    UsageError,
    key_values,
    refuse_together,
    require,
    require_one,
)
from moldau.cli.shared.connection import add_bootstrap_options
from moldau.cli.shared.tool import run_tool


def parser() -> ToolParser:
    made = ToolParser("kafka-test", "A tool.", lambda: "some notes")
    add_bootstrap_options(made)
    made.flag("--list", "List.")
    made.option("--count", "N", "A number.", type=int)
    made.option("--topic", "T", "A topic.")
    return made


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--bogus"], "bogus is not a recognized option"),
        (["--lst"], r"lst is not a recognized option \(did you mean --list\?\)"),
        (["--topics", "x"], "did you mean --topic"),
        (["--count", "many"], "Cannot parse argument 'many' of option count"),
        (["--count"], "Option count requires an argument"),
        (["stray"], "stray is not an option"),
    ],
)
def test_invalid_arguments_have_the_messages_of_kafka(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parser().parse(argv)


def test_values_may_be_negative_or_follow_an_equal_sign() -> None:
    assert parser().parse(["--count", "-1"]).count == -1
    assert parser().parse(["--topic=a=b"]).topic == "a=b"


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(parser, lambda options: 0, ["--help"]) == 0
    shown = capsys.readouterr().out
    assert "--bootstrap-server" in shown
    assert "some notes" in shown
    assert "zookeeper" not in shown
    assert run_tool(parser, lambda options: 0, ["--version"]) == 0
    assert capsys.readouterr().out.startswith("4.3.0 (Moldau ")


def test_required_and_incompatible_options() -> None:
    options = Namespace(topic="t", list=True, count=None)
    require(options, "topic")
    with pytest.raises(UsageError, match='Missing required argument "\\[count\\]"'):
        require(options, "count")
    with pytest.raises(UsageError, match='Option "\\[topic\\]" can\'t be used with option "\\[list\\]"'):
        refuse_together(options, "topic", ["list"])
    with pytest.raises(
        UsageError, match=r"Exactly one of the following arguments is required: \[topic\], \[list\]"
    ):
        require_one(options, "topic", "list")
    require_one(options, "topic", "count")


def test_key_values_are_parsed() -> None:
    assert key_values(["a=1", "b=x=y", "c"]) == {"a": "1", "b": "x=y", "c": ""}


def test_topic_pattern_matches_whole_names_and_excludes_internal_topics() -> None:
    assert TopicPattern("a, b.*").allows("bcd")
    assert not TopicPattern("a").allows("ab")
    assert not TopicPattern(".*").allows("__consumer_offsets", exclude_internal=True)
    assert TopicPattern("'a'").allows("a")
