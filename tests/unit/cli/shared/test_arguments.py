from __future__ import annotations

from argparse import Namespace

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.arguments import (
    ToolParser,
    TopicPattern,
    UsageError,
    key_values,
    refuse_together,
    require,
    require_one,
)
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers
from moldau.cli.shared.tool import ToolError, run_tool


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
def test_mistakes_in_kafkas_words(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parser().parse(argv)


def test_negative_numbers_and_equal_signs() -> None:
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


def test_without_arguments_the_help_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(parser, lambda options: 0, []) == 1
    assert "--list" in capsys.readouterr().err


def test_checks() -> None:
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


def test_key_values() -> None:
    assert key_values(["a=1", "b=x=y", "c"]) == {"a": "1", "b": "x=y", "c": ""}


def test_old_ways_to_name_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap_servers(parser().parse(["--broker-list", "h:1"])) == "h:1"
    assert capsys.readouterr().err == ""
    assert bootstrap_servers(parser().parse(["--zookeeper", "z:2181"])) == "localhost:9092"
    assert "no longer uses ZooKeeper" in capsys.readouterr().err
    assert bootstrap_servers(parser().parse(["--zookeeper", "z:2181", "--bootstrap-server", "h:1"])) == "h:1"
    with pytest.raises(UsageError, match="bootstrap-server"):
        bootstrap_servers(parser().parse(["--list"]))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no sense"), 1, "no sense\nTry 'kafka-test --help'."),
        (ToolError("cannot"), 1, "cannot"),
        (KafkaError(ErrorCode.INVALID_CONFIG, "bad value"), 1, "bad value"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_sentences(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(options: Namespace) -> int:
        raise error

    assert run_tool(parser, execute, ["--list"]) == code
    assert capsys.readouterr().err.strip() == message


def test_topic_pattern_matches_whole_names_and_excludes_internal_topics() -> None:
    assert TopicPattern("a, b.*").allows("bcd")
    assert not TopicPattern("a").allows("ab")
    assert not TopicPattern(".*").allows("__consumer_offsets", exclude_internal=True)
    assert TopicPattern("'a'").allows("a")
