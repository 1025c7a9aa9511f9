"""The rules of StandardAuthorizer, and its decisions against a plain reading of all ACLs."""

from __future__ import annotations

import json
import logging
import random

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import JsonFormatter
from moldau.protocol.api_keys import ApiKey
from moldau.security.acl import standard
from moldau.security.acl.audit import AUDIT_LOGGER
from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.acl.permissions import (
    CLUSTER_ACTION,
    CLUSTER_NAME,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    Permission,
)
from moldau.security.acl.standard import StandardAuthorizer, parse_super_users
from moldau.security.principal import ANONYMOUS, KafkaPrincipal
from tests.unit.security.acl.acls import AclLog, acl

ALICE = KafkaPrincipal("User", "alice")
BOB = KafkaPrincipal("User", "bob")
HOST = "10.0.0.1"


def authorizer_with(*acls: str, default: bool = False) -> StandardAuthorizer:
    authorizer = StandardAuthorizer({"User:root"}, allow_everyone_if_no_acl=default)
    AclLog(authorizer).change(add=map(acl, acls))
    return authorizer


def test_without_acls_everything_is_denied() -> None:
    assert not authorizer_with().authorize(ALICE, HOST, READ_TOPIC, "foo")


def test_super_users_may_do_everything_even_against_a_deny_and_before_acls_are_loaded() -> None:
    root = KafkaPrincipal("User", "root")
    assert authorizer_with("DENY User:root ALL TOPIC foo").authorize(root, HOST, READ_TOPIC, "foo")
    assert StandardAuthorizer({"User:root"}).authorize(root, HOST, CLUSTER_ACTION, CLUSTER_NAME)


def test_until_acls_are_loaded_only_super_users_are_served() -> None:
    loading = StandardAuthorizer({"User:root"}, allow_everyone_if_no_acl=True)
    with pytest.raises(KafkaError) as refused:
        loading.authorize(ALICE, HOST, READ_TOPIC, "foo")
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    AclLog(loading)
    assert loading.authorize(ALICE, HOST, READ_TOPIC, "foo")


def test_a_node_that_is_no_super_user_is_named_while_acls_are_not_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loading = StandardAuthorizer({"User:root"})
    for permission in (READ_TOPIC, CLUSTER_ACTION, CLUSTER_ACTION):
        with pytest.raises(KafkaError):
            loading.authorize(ALICE, HOST, permission, CLUSTER_NAME)
    assert len(caplog.messages) == 1
    assert "User:alice requires CLUSTER_ACTION" in caplog.text


@pytest.mark.parametrize("pattern", ["foo", "f*", "foo*", "*"])
def test_each_kind_of_pattern_allows_and_denies(pattern: str) -> None:
    allowed = authorizer_with(f"ALLOW User:alice READ TOPIC {pattern}")
    assert allowed.authorize(ALICE, HOST, READ_TOPIC, "foo")
    assert not allowed.authorize(BOB, HOST, READ_TOPIC, "foo")
    assert not allowed.authorize(ALICE, HOST, WRITE_TOPIC, "foo")
    assert not allowed.authorize(ALICE, HOST, READ_GROUP, "foo")
    denied = authorizer_with("ALLOW User:alice READ TOPIC foo", f"DENY User:* READ TOPIC {pattern}")
    assert not denied.authorize(ALICE, HOST, READ_TOPIC, "foo")


def test_a_literal_pattern_is_no_prefix_and_a_prefix_is_not_longer_than_the_name() -> None:
    authorizer = authorizer_with("ALLOW User:alice READ TOPIC foo", "ALLOW User:alice READ TOPIC barbar*")
    assert not authorizer.authorize(ALICE, HOST, READ_TOPIC, "foobar")
    assert not authorizer.authorize(ALICE, HOST, READ_TOPIC, "bar")


@pytest.mark.parametrize("operation", ["READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALL"])
def test_operations_that_imply_describe(operation: str) -> None:
    allowed = authorizer_with(f"ALLOW User:alice {operation} TOPIC foo")
    assert allowed.authorize(ALICE, HOST, DESCRIBE_TOPIC, "foo")
    denied = authorizer_with("ALLOW User:alice DESCRIBE TOPIC foo", f"DENY User:alice {operation} TOPIC foo")
    assert denied.authorize(ALICE, HOST, DESCRIBE_TOPIC, "foo") is (operation not in ("DESCRIBE", "ALL"))


@pytest.mark.parametrize("operation", ["CREATE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "CLUSTER_ACTION"])
def test_other_operations_do_not_imply_describe(operation: str) -> None:
    authorizer = authorizer_with(f"ALLOW User:alice {operation} TOPIC foo")
    assert not authorizer.authorize(ALICE, HOST, DESCRIBE_TOPIC, "foo")


def test_alter_configs_implies_describe_configs_only_if_allowed() -> None:
    allowed = authorizer_with("ALLOW User:alice ALTER_CONFIGS TOPIC foo")
    assert allowed.authorize(ALICE, HOST, DESCRIBE_TOPIC_CONFIGS, "foo")
    assert not authorizer_with("ALLOW User:alice ALTER TOPIC foo").authorize(
        ALICE, HOST, DESCRIBE_TOPIC_CONFIGS, "foo"
    )


def test_hosts_are_compared_as_text() -> None:
    authorizer = authorizer_with("ALLOW User:alice READ TOPIC foo @10.0.0.1", "DENY User:* ALL TOPIC * @::1")
    assert authorizer.authorize(ALICE, "10.0.0.1", READ_TOPIC, "foo")
    assert not authorizer.authorize(ALICE, "10.0.0.2", READ_TOPIC, "foo")
    assert not authorizer.authorize(ALICE, "010.0.0.1", READ_TOPIC, "foo")


def test_a_token_has_the_rights_of_its_owner() -> None:
    with_token = KafkaPrincipal("User", "alice", token_authenticated=True)
    assert authorizer_with("ALLOW User:alice READ TOPIC foo").authorize(with_token, HOST, READ_TOPIC, "foo")


def test_everyone_is_allowed_only_where_no_acl_applies_to_the_resource() -> None:
    authorizer = authorizer_with("ALLOW User:alice READ TOPIC foo", "DENY User:x READ TOPIC b*", default=True)
    assert authorizer.authorize(BOB, HOST, WRITE_TOPIC, "other")
    assert not authorizer.authorize(BOB, HOST, READ_TOPIC, "foo"), "an ACL of another principal counts"
    assert not authorizer.authorize(BOB, HOST, READ_TOPIC, "bar"), "an ACL on a prefix counts"
    assert authorizer.authorize(BOB, HOST, READ_GROUP, "foo"), "an ACL on another type does not"


def test_a_change_takes_effect_although_the_decision_was_cached() -> None:
    authorizer = StandardAuthorizer()
    log = AclLog(authorizer)
    assert not authorizer.authorize(ALICE, HOST, READ_TOPIC, "foo")
    log.change(add=[acl("ALLOW User:alice READ TOPIC foo")])
    assert authorizer.authorize(ALICE, HOST, READ_TOPIC, "foo")
    log.change(remove=[acl("ALLOW User:alice READ TOPIC foo")])
    assert not authorizer.authorize(ALICE, HOST, READ_TOPIC, "foo")
    assert len(authorizer) == 0


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard, "MAX_CACHED_DECISIONS", 10)
    authorizer = authorizer_with("ALLOW User:alice READ TOPIC t5")
    for _ in range(2):
        for index in range(100):
            assert authorizer.authorize(ALICE, HOST, READ_TOPIC, f"t{index}") is (index == 5)
    assert len(authorizer._decisions) <= 10


# Any resource of a type (KIP-679).


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        (["ALLOW User:alice WRITE TOPIC foo"], True),
        (["ALLOW User:alice WRITE TOPIC f*"], True),
        (["ALLOW User:* ALL TOPIC *"], True),
        (["ALLOW User:alice READ TOPIC foo"], False),
        (["ALLOW User:alice WRITE TOPIC foo @10.0.0.9"], False),
        (["ALLOW User:alice WRITE TOPIC foo", "DENY User:alice WRITE TOPIC foo"], False),
        (["ALLOW User:alice WRITE TOPIC foo", "DENY User:alice WRITE TOPIC foo*"], False),
        (["ALLOW User:alice WRITE TOPIC foo", "DENY User:alice WRITE TOPIC f*"], False),
        (["ALLOW User:alice WRITE TOPIC foo", "DENY User:alice WRITE TOPIC foobar*"], True),
        (["ALLOW User:alice WRITE TOPIC f*", "DENY User:alice WRITE TOPIC f"], True),
        (["ALLOW User:alice WRITE TOPIC f*", "DENY User:* ALL TOPIC f*"], False),
        (["ALLOW User:alice WRITE TOPIC foo", "DENY User:* WRITE TOPIC *"], False),
        (["ALLOW User:alice WRITE TOPIC *", "DENY User:alice WRITE TOPIC h*"], True),
        (["ALLOW User:alice WRITE TOPIC *", "DENY User:alice WRITE TOPIC *"], False),
        (["ALLOW User:alice WRITE TOPIC foo", "DENY User:bob WRITE TOPIC *"], True),
    ],
)
def test_whether_some_resource_of_a_type_is_allowed(acls: list[str], allowed: bool) -> None:
    authorizer = authorizer_with(*acls)
    for _ in range(2):
        found = authorizer.authorize_by_resource_type(ALICE, HOST, AclOperation.WRITE, ResourceType.TOPIC)
        assert found is allowed


def test_super_users_and_the_default_allow_some_resource() -> None:
    root = KafkaPrincipal("User", "root")
    arguments = HOST, AclOperation.WRITE, ResourceType.TOPIC
    denied = authorizer_with("DENY User:root ALL TOPIC *")
    assert denied.authorize_by_resource_type(root, *arguments)
    assert authorizer_with(default=True).authorize_by_resource_type(ALICE, *arguments)


# Audit log.


def test_a_refused_operation_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = authorizer_with("ALLOW User:alice ALL TOPIC *", "DENY User:alice WRITE TOPIC f* @10.0.0.1")
    with caplog.at_level(logging.INFO, AUDIT_LOGGER):
        for _ in range(2):
            authorizer.authorize(ALICE, HOST, WRITE_TOPIC, "foo", api_key=ApiKey.PRODUCE)
        authorizer.authorize(ALICE, HOST, WRITE_TOPIC, "foo", log_denied=False)
        authorizer.authorize(ALICE, HOST, WRITE_TOPIC, "bar")
    assert caplog.messages == 2 * [
        "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:foo for request = Produce with resourceRefCount = 1 based on rule MatchingAcl("
        "acl=StandardAcl[resourceType=TOPIC, resourceName=f, patternType=PREFIXED, principal=User:alice, "
        "host=10.0.0.1, operation=WRITE, permissionType=DENY])"
    ]
    line = json.loads(JsonFormatter().format(caplog.records[0]))
    assert (line["event"], line["principal"], line["host"]) == ("operation.denied", "User:alice", HOST)
    assert (line["operation"], line["resource_type"], line["resource"]) == ("WRITE", "TOPIC", "foo")
    assert line["message"] == caplog.messages[0]


def test_an_allowed_operation_is_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = authorizer_with("ALLOW User:alice WRITE TOPIC foo", "ALLOW User:* ALL TOPIC *")
    with caplog.at_level(logging.DEBUG, AUDIT_LOGGER):
        authorizer.authorize(ALICE, HOST, DESCRIBE_TOPIC, "foo", api_key=ApiKey.METADATA)
        authorizer.authorize(KafkaPrincipal("User", "root"), HOST, CLUSTER_ACTION, CLUSTER_NAME)
    assert [line.partition(" based on rule ")[2] for line in caplog.messages] == [
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=*, patternType=LITERAL, "
        "principal=User:*, host=*, operation=ALL, permissionType=ALLOW])",
        "SuperUser",
    ]


def test_what_a_request_does_not_name_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = authorizer_with("ALLOW User:alice WRITE TOPIC foo")
    with caplog.at_level(logging.DEBUG, AUDIT_LOGGER):
        assert authorizer.authorize(ALICE, HOST, WRITE_TOPIC, "foo", log_allowed=False)
        assert not authorizer.authorize(ALICE, HOST, READ_TOPIC, "foo", log_denied=False)
        assert authorizer.authorize_by_resource_type(ALICE, HOST, AclOperation.WRITE, ResourceType.TOPIC)
    assert caplog.messages == []


def test_a_check_of_a_resource_type_is_logged_without_references(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = authorizer_with("ALLOW User:alice WRITE TOPIC *")
    with caplog.at_level(logging.DEBUG, AUDIT_LOGGER):
        authorizer.authorize_by_resource_type(
            ALICE, HOST, AclOperation.WRITE, ResourceType.TOPIC, api_key=ApiKey.INIT_PRODUCER_ID
        )
    assert "Topic:LITERAL:hardcode for request = InitProducerId with resourceRefCount = 0" in caplog.text


def test_refusals_without_an_acl_are_logged_as_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, AUDIT_LOGGER):
        authorizer_with().authorize(ANONYMOUS, HOST, READ_TOPIC, "foo", api_key=ApiKey.FETCH)
    assert caplog.messages == [
        "Principal = User:ANONYMOUS is Denied operation = READ from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:foo for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    ]


# Configuration.


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users(" User:a ;User:CN=b,O=c;; ") == {"User:a", "User:CN=b,O=c"}
    assert parse_super_users(None) == frozenset()
    with pytest.raises(ValueError, match="principalType:principalName but got alice"):
        parse_super_users("alice")


# Against a plain reading of all ACLs.


def plainly(acls: list[AclBinding], principal: str, host: str, wanted: Permission, name: str) -> bool:
    implied = {
        AclOperation.DESCRIBE: {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        },
        AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
    }
    verdicts = set()
    for each in acls:
        literal = each.pattern_type == PatternType.LITERAL
        applies = each.resource_name in (name, "*") if literal else name.startswith(each.resource_name)
        if not applies or each.resource_type != wanted.resource_type:
            continue
        if each.principal not in (principal, "User:*") or each.host not in (host, "*"):
            continue
        operations = {each.operation}
        allows = each.permission_type == PermissionType.ALLOW
        grants = {wanted.operation, AclOperation.ALL} | (
            implied.get(wanted.operation, set()) if allows else set()
        )
        if operations & grants:
            verdicts.add(each.permission_type)
    return PermissionType.DENY not in verdicts and PermissionType.ALLOW in verdicts


def test_decisions_equal_a_plain_reading_of_all_acls() -> None:
    rng = random.Random(14)
    names = ["a", "ab", "abc", "abd", "b", "*", "abcabc"]
    users, hosts = ["User:alice", "User:bob", "User:*"], ["*", HOST, "::1"]
    operations = [each for each in AclOperation if each > AclOperation.ANY]
    types = [ResourceType.TOPIC, ResourceType.GROUP]
    authorizer = StandardAuthorizer()
    log = AclLog(authorizer)
    for _ in range(300):
        if log.ids and rng.random() < 0.45:
            log.change(remove=rng.sample(sorted(log.ids), rng.randint(1, min(3, len(log.ids)))))
        else:
            new = AclBinding(
                rng.choice(types),
                rng.choice(names),
                rng.choice([PatternType.LITERAL, PatternType.PREFIXED]),
                rng.choice(users),
                rng.choice(hosts),
                rng.choice(operations),
                rng.choice([PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY]),
            )
            log.change(add=() if new in log.ids else [new])
        acls = list(log.ids)
        assert len(authorizer) == len(acls)
        for _ in range(20):
            permission = Permission(rng.choice(operations), rng.choice(types))
            principal, host, name = rng.choice([ALICE, BOB]), rng.choice(hosts[1:]), rng.choice(names)
            expected = plainly(acls, str(principal), host, permission, name)
            assert authorizer.authorize(principal, host, permission, name) is expected


def test_decisions_about_long_names_are_not_kept() -> None:
    authorizer = authorizer_with("ALLOW User:alice READ TOPIC foo*")
    for number in range(3):
        assert authorizer.authorize(ALICE, HOST, READ_TOPIC, f"foo{number}" + "o" * 30_000)
    assert not authorizer._decisions


def test_a_name_cannot_forge_a_line_of_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, AUDIT_LOGGER):
        authorizer_with().authorize(ALICE, HOST, READ_TOPIC, "a\nPrincipal = User:root is Allowed")
    assert [r"Topic:LITERAL:a\nPrincipal" in line for line in caplog.messages] == [True]
