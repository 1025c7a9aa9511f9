"""Random ACLs and random questions: our StandardAuthorizer decides like Kafka's, called in a JVM."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from moldau.security.acl.permissions import Permission
from moldau.security.acl.standard import StandardAuthorizer, parse_super_users
from moldau.security.principal import parse_principal
from tests.interop.java_oracle import ask_java
from tests.unit.security.acl.acls import AclLog

pytestmark = pytest.mark.interop

SETS = 250
QUESTIONS = 60
TYPES = [each for each in ResourceType if each > ResourceType.ANY]
#: Names that are prefixes of each other, and the wildcard as the name of a resource.
NAMES = ["a", "ab", "abc", "abd", "b", "*", "hardcode", "h", "A", "ab.c", "ä", "äö", "kafka-cluster"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "User:", "User:Alice", "Group:alice", "User:a:b", "Group:*"]
#: Kafka's own authorizer fails for a client that is called `*`.
CLIENTS = [each for each in PRINCIPALS if each != "User:*"]
HOSTS = ["*", "127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1", "::1", "10.0.0.0/8"]
CLIENT_HOSTS = ["127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1"]
SUPER_USERS = ["", "User:alice", "User:carol; User:bob", "Group:alice"]


class Question(NamedTuple):
    """Whether an operation is allowed; on any resource of the type if `name` is None."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None


class Case(NamedTuple):
    super_users: str
    allow_everyone: bool
    acls: list[AclBinding]
    questions: list[Question]


def _case(seed: int) -> Case:
    choice = random.Random(seed)
    types = choice.sample(TYPES, choice.randint(1, 3))
    count = choice.choice([0, 1, 2, 4, 8, 20])
    acls = list(dict.fromkeys(_acl(choice, choice.choice(types)) for _ in range(count)))
    questions = [_question(choice, choice.choice(types)) for _ in range(QUESTIONS)]
    return Case(choice.choice(SUPER_USERS), choice.random() < 0.3, acls, questions)


def _acl(choice: random.Random, kind: ResourceType) -> AclBinding:
    return AclBinding(
        kind,
        choice.choice(NAMES),
        choice.choice([PatternType.LITERAL, PatternType.LITERAL, PatternType.PREFIXED]),
        choice.choice(PRINCIPALS),
        choice.choice(["*", "*", *HOSTS]),
        choice.choice([AclOperation.ALL, *SUPPORTED_OPERATIONS[kind]]),
        choice.choice([PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY]),
    )


def _question(choice: random.Random, kind: ResourceType) -> Question:
    return Question(
        choice.choice(CLIENTS),
        choice.choice(CLIENT_HOSTS),
        choice.choice(SUPPORTED_OPERATIONS[kind]),
        kind,
        None if choice.random() < 0.2 else choice.choice(NAMES),
    )


def _lines(cases: list[Case]) -> Iterator[str]:
    for case in cases:
        yield f"NEW\t{case.super_users}\t{str(case.allow_everyone).lower()}"
        for acl in case.acls:
            fields = (
                acl.resource_type.name, acl.resource_name, acl.pattern_type.name, acl.principal, acl.host,
                acl.operation.name, acl.permission_type.name,
            )  # fmt: skip
            yield "\t".join(("ACL", *fields))
        for each in case.questions:
            asked = (each.principal, each.host, each.operation.name, each.resource_type.name)
            yield "\t".join(("ANY", *asked) if each.name is None else ("ASK", *asked, each.name))


def _decide(case: Case) -> list[bool]:
    authorizer = StandardAuthorizer(
        parse_super_users(case.super_users), allow_everyone_if_no_acl=case.allow_everyone
    )
    AclLog(authorizer).change(add=case.acls)
    return [_answer(authorizer, each) for each in case.questions]


def _answer(authorizer: StandardAuthorizer, question: Question) -> bool:
    principal = parse_principal(question.principal)
    if question.name is None:
        return authorizer.authorize_by_resource_type(
            principal, question.host, question.operation, question.resource_type
        )
    permission = Permission(question.operation, question.resource_type)
    return authorizer.authorize(principal, question.host, permission, question.name, log_denied=False)


def test_random_acls_decide_like_apache_kafka() -> None:
    cases = [_case(seed) for seed in range(SETS)]
    theirs = [answer == "ALLOWED" for _, answer in ask_java("AclDecisions", _lines(cases))]
    ours = [allowed for case in cases for allowed in _decide(case)]
    asked = [(case, question) for case in cases for question in case.questions]
    assert len(theirs) == len(ours) == SETS * QUESTIONS
    different = [
        f"{question}: Apache {theirs[n]}, ours {ours[n]}; super users {case.super_users!r}, "
        f"allow everyone {case.allow_everyone}, ACLs {[str(each) for each in case.acls]}"
        for n, (case, question) in enumerate(asked)
        if theirs[n] != ours[n]
    ]
    assert not different, f"{len(different)} differences\n" + "\n".join(different[:5])
    assert 0.1 < sum(ours) / len(ours) < 0.9
