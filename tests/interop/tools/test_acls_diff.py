"""kafka-acls compared with Apache Kafka's; see `harness/apache/tool_pairs.py`.

Java prints resources and ACLs in hash order, which changes from run to run: lines are compared in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.security.acl.loading import STANDARD_AUTHORIZER
from moldau.testing import Cluster
from tests.harness.apache.tool_pairs import Tools

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

TOPIC = ("--topic", "{topic}")
USER = ("--allow-principal", "User:{topic}")


@pytest.fixture(scope="module")
def acl_tools(libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(config=settings) as node:
        yield Tools(node, libs, tmp_path_factory.mktemp("acls"))


def same(tools: Tools, *argv: str, name: str) -> list[str]:
    """Require the same lines in any order, without the blanks around them."""
    both = tools.run("kafka-acls", *argv, topic=name)
    assert (both.ours.code, both.java.code) == (0, 0), both
    ours, java = (sorted(line.strip() for line in run.lines) for run in both)
    assert ours == java
    return ours


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain", (*TOPIC, *USER)),
        ("several", (*TOPIC, *USER, "--operation", "Read", "--operation", "describeconfigs")),
        ("hosts", (*TOPIC, *USER, "--allow-host", "10.0.0.1", "--allow-host", "10.0.0.2")),
        ("denied", (*TOPIC, "--deny-principal", "User:{topic}", "--deny-host", "10.0.0.1")),
        ("both", (*TOPIC, *USER, "--deny-principal", "User:other")),
        ("prefixed", (*TOPIC, *USER, "--resource-pattern-type", "prefixed")),
        ("all", ("--group", "{topic}", *USER, "--operation", "All")),
        ("producer", (*TOPIC, *USER, "--producer", "--transactional-id", "{topic}", "--idempotent")),
        ("consumer", (*TOPIC, *USER, "--consumer", "--group", "{topic}")),
        ("roles", (*TOPIC, *USER, "--producer", "--consumer", "--group", "{topic}")),
        ("token", ("--delegation-token", "{topic}", *USER, "--operation", "Describe")),
        ("user", ("--user-principal", "User:{topic}", *USER, "--operation", "CreateTokens")),
        ("two", (*TOPIC, "--topic", "another-{topic}", *USER)),
    ],
)
def test_added_acls_are_listed_and_removed_as_by_java(
    acl_tools: Tools, name: str, options: tuple[str, ...]
) -> None:
    listing = [word for word in options if word not in ("--producer", "--consumer", "--idempotent")]
    for option in ("--allow-principal", "--deny-principal", "--allow-host", "--deny-host", "--operation"):
        while option in listing:
            del listing[listing.index(option) : listing.index(option) + 2]
    assert any(line.startswith("Adding ACLs") for line in same(acl_tools, "--add", *options, name=name))
    assert any(line.endswith("already exists.") for line in same(acl_tools, "--add", *options, name=name))
    assert any(line.startswith("Current ACLs") for line in same(acl_tools, "--list", *listing, name=name))
    same(acl_tools, "--list", "--principal", "User:{topic}", name=name)
    assert same(acl_tools, "--remove", "--force", *options, name=name) == []
    assert same(acl_tools, "--list", *listing, name=name) == []


def test_filters_of_any_type_and_matching_filters_equal_javas(acl_tools: Tools) -> None:
    same(acl_tools, "--add", *TOPIC, *USER, name="match")
    same(acl_tools, "--add", "--topic", "mat", *USER, "--resource-pattern-type", "PREFIXED", name="match")
    for kind in ("any", "match", "Literal"):
        same(acl_tools, "--list", *TOPIC, "--resource-pattern-type", kind, name="match")
    same(acl_tools, "--remove", "--force", *TOPIC, name="match")
    assert same(acl_tools, "--list", *TOPIC, name="match") == []


def test_controllers_are_used_like_by_java(acl_tools: Tools) -> None:
    assert isinstance(acl_tools.node, Cluster)
    address = ("--bootstrap-controller", acl_tools.node.bootstrap_controllers)
    for action in (("--add", *TOPIC, *USER), ("--list", *TOPIC), ("--remove", "--force", *TOPIC)):
        both = acl_tools.run("kafka-acls", *address, *action, topic="controller", bootstrap=False)
        assert (both.ours.code, both.java.code) == (0, 0), both
        assert both.ours.out == both.java.out


@pytest.mark.parametrize(
    "argv",
    [
        ["--list", "--add"],
        ["--topic", "x"],
        ["--list", "--producer", "--topic", "x"],
        ["--list", "--allow-principal", "User:a"],
        ["--add", "--producer", "--allow-principal", "User:a"],
        ["--add", "--producer", "--topic", "x", "--operation", "Read"],
        ["--add", "--consumer", "--topic", "x", "--allow-principal", "User:a"],
        ["--add", "--consumer", "--topic", "x", "--group", "g", "--cluster", "--allow-principal", "User:a"],
        ["--add", "--topic", "x"],
        ["--add", "--allow-principal", "User:a"],
        ["--add", "--topic", "x", "--principal", "User:a"],
        ["--add", "--topic", "x", "--idempotent"],
        ["--add", "--topic", "x", "--allow-principal", "User:a", "--resource-pattern-type", "match"],
        ["--add", "--topic", "x", "--allow-principal", "User:a", "--resource-pattern-type", "bogus"],
        ["--add", "--topic", "x", "--allow-principal", "alice"],
        ["--add", "--topic", "", "--allow-principal", "User:a"],
        ["--list", "--principal", "alice"],
        ["--list", "--bootstrap-controller", "localhost:1"],
    ],
    ids=" ".join,
)
def test_failures_equal_javas(acl_tools: Tools, argv: list[str]) -> None:
    acl_tools.same_failure("kafka-acls", *argv)


def test_an_operation_that_the_resource_does_not_have_is_refused(acl_tools: Tools) -> None:
    for operation in ("IdempotentWrite", "bogus"):
        argv = ("--add", "--topic", "x", "--allow-principal", "User:a", "--operation", operation)
        both = acl_tools.run("kafka-acls", *argv)
        assert (both.ours.code, both.java.code) == (1, 1)
        for run in both:
            assert "ResourceType TOPIC only supports operations [" in run.out + run.err


def test_the_tool_says_that_there_is_no_authorizer(tools: Tools) -> None:
    tools.same_failure("kafka-acls", "--list")
    tools.same_failure("kafka-acls", "--add", "--topic", "x", "--allow-principal", "User:a")
