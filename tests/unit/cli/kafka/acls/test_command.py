"""kafka-acls: what it sends and prints, confirmation, invalid options. The broker stores ACLs."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from moldau.cli.kafka.acls import command
from moldau.controller.controller import Decide, Q, R
from moldau.controller.security.acls import create_acls, delete_acls, describe_acls
from moldau.metadata.image import MetadataImage
from moldau.protocol.api_keys import ApiKey
from moldau.security.acl.bindings import AclBinding, binding_of_record
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.controller.harness import Cluster
from tests.unit.security.acl.acls import acl

ORDERS = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"


class AclBroker:
    """A broker whose controller decides about ACLs."""

    def __init__(self) -> None:
        self.controller = Cluster()
        self.fake = FakeBroker(
            {
                ApiKey.DESCRIBE_ACLS: lambda request: describe_acls(self._image, request),
                ApiKey.CREATE_ACLS: lambda request: self._decide(create_acls, request),
                ApiKey.DELETE_ACLS: lambda request: self._decide(delete_acls, request),
            }
        )

    @property
    def _image(self) -> MetadataImage:
        return self.controller.controller.image

    def _decide(self, decide: Decide[Q, R], request: Q) -> R:
        return self.controller.decide(decide, request)

    @property
    def acls(self) -> set[AclBinding]:
        return {binding_of_record(record) for record in self.controller.controller.image.acls.values()}

    def run(self, *argv: str) -> int:
        return command.main(["--bootstrap-server", self.fake.bootstrap, *argv])


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    broker = AclBroker()
    with broker.fake:
        yield broker


def test_acls_are_added_and_existing_ones_reported(
    broker: AclBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("--add", "--topic", "orders", "--allow-principal", "User:alice", "--operation", "Read")
    assert broker.run(*argv) == 0
    pattern = ORDERS
    entry = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
    assert capsys.readouterr().out == f"Adding ACLs for resource `{pattern}`: \n \t{entry}\n\n"
    assert broker.run(*argv) == 0
    assert capsys.readouterr().out == f"Acl (pattern={pattern}, entry={entry}) already exists.\n"
    assert broker.acls == {acl("ALLOW User:alice READ TOPIC orders")}


def test_principals_hosts_and_operations_are_combined(broker: AclBroker) -> None:
    argv = (
        "--add", "--group", "g", "--resource-pattern-type", "PreFixed",
        "--allow-principal", "User:a", "--allow-principal", "User:b", "--allow-host", "10.0.0.1",
        "--deny-principal", "User:c", "--operation", "read", "--operation", "DescribeConfigs",
    )  # fmt: skip
    assert broker.run(*argv) == 0
    assert broker.acls == {
        acl("ALLOW User:a READ GROUP g* @10.0.0.1"),
        acl("ALLOW User:a DESCRIBE_CONFIGS GROUP g* @10.0.0.1"),
        acl("ALLOW User:b READ GROUP g* @10.0.0.1"),
        acl("ALLOW User:b DESCRIBE_CONFIGS GROUP g* @10.0.0.1"),
        acl("DENY User:c READ GROUP g*"),
        acl("DENY User:c DESCRIBE_CONFIGS GROUP g*"),
    }


def test_roles_are_sets_of_acls(broker: AclBroker) -> None:
    argv = ("--topic", "t", "--allow-principal", "User:a", "--producer", "--idempotent")
    assert broker.run("--add", *argv, "--transactional-id", "x", "--consumer", "--group", "g") == 0
    assert broker.acls == {
        acl("ALLOW User:a WRITE TOPIC t"),
        acl("ALLOW User:a READ TOPIC t"),
        acl("ALLOW User:a DESCRIBE TOPIC t"),
        acl("ALLOW User:a CREATE TOPIC t"),
        acl("ALLOW User:a WRITE TRANSACTIONAL_ID x"),
        acl("ALLOW User:a DESCRIBE TRANSACTIONAL_ID x"),
        acl("ALLOW User:a IDEMPOTENT_WRITE CLUSTER kafka-cluster"),
        acl("ALLOW User:a READ GROUP g"),
    }
    assert broker.run("--remove", "--force", *argv) == 0
    assert broker.acls == {
        acl("ALLOW User:a READ TOPIC t"),
        acl("ALLOW User:a WRITE TRANSACTIONAL_ID x"),
        acl("ALLOW User:a DESCRIBE TRANSACTIONAL_ID x"),
        acl("ALLOW User:a READ GROUP g"),
    }


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("Y\n", 0), ("n\n", 1), ("", 1)])
def test_removal_is_confirmed(
    broker: AclBroker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    left: int,
) -> None:
    argv = ("--topic", "orders", "--allow-principal", "User:alice")
    assert broker.run("--add", *argv) == 0
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert broker.run("--remove", *argv) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Are you sure you want to remove ACLs: ",
        " \t(principal=User:alice, host=*, operation=ALL, permissionType=ALLOW)",
        f" from resource filter `{ORDERS}`? (y/n)",
    ]
    assert len(broker.acls) == left


def test_without_principals_all_acls_of_a_resource_are_removed(
    broker: AclBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for user in ("User:a", "User:b"):
        assert broker.run("--add", "--cluster", "--allow-principal", user) == 0
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert broker.run("--remove", "--cluster") == 0
    assert capsys.readouterr().out == (
        "Are you sure you want to delete all ACLs for resource filter "
        "`ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)`? (y/n)\n"
    )
    assert broker.acls == set()


def test_lists_by_resource_and_by_principal(broker: AclBroker, capsys: pytest.CaptureFixture[str]) -> None:
    for name, user in (("b", "User:x"), ("a", "User:y"), ("a", "User:x")):
        assert broker.run("--add", "--topic", name, "--allow-principal", user) == 0
    capsys.readouterr()

    def listed(name: str, *users: str) -> str:
        pattern = f"ResourcePattern(resourceType=TOPIC, name={name}, patternType=LITERAL)"
        entries = [f"\t(principal={user}, host=*, operation=ALL, permissionType=ALLOW)\n" for user in users]
        return f"Current ACLs for resource `{pattern}`:\n{''.join(entries)}\n"

    assert broker.run("--list") == 0
    assert capsys.readouterr().out == listed("a", "User:x", "User:y") + listed("b", "User:x")
    assert broker.run("--list", "--topic", "b", "--topic", "c") == 0
    assert capsys.readouterr().out == listed("b", "User:x")
    assert broker.run("--list", "--principal", "User:y", "--principal", "User:z") == 0
    assert capsys.readouterr().out == (
        "ACLs for principal `User:y`\n" + listed("a", "User:y") + "ACLs for principal `User:z`\n"
    )


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--add", "--remove"], "Command must include exactly one action: --list, --add, --remove. "),
        (
            ["--add", "--producer", "--topic", "t", "--operation", "Read"],
            'Option "[producer]" can\'t be used',
        ),
        (["--add", "--allow-principal", "User:a"], "You must provide at least one resource:"),
        (["--add", "--topic", "t"], "You must specify one of: --allow-principal, --deny-principal"),
        (
            ["--add", "--topic", "t", "--resource-pattern-type", "any"],
            "value of 'ANY' is not valid when adding",
        ),
        (
            ["--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "CreateTokens"],
            "ResourceType TOPIC only supports operations [READ, WRITE, CREATE,",
        ),
    ],
)
def test_invalid_command_lines(
    broker: AclBroker, capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    assert broker.run(*argv) == 1
    assert sentence in capsys.readouterr().err


def test_a_principal_has_a_type(broker: AclBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert broker.run("--add", "--topic", "t", "--allow-principal", "alice") == 1
    assert capsys.readouterr().out == (
        "Error while executing ACL command: expected a string in format principalType:principalName but got "
        "alice\n"
    )


def test_errors_of_the_broker_are_named_as_in_java(
    broker: AclBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert broker.run("--add", "--topic", "", "--allow-principal", "User:a") == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "Error while executing ACL command: org.apache.kafka.common.errors.InvalidRequestException: Invalid "
        "empty resource name"
    )
