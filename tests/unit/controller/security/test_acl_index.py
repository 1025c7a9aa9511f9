"""The index of ACLs by pattern, against a plain list, through random changes."""

from __future__ import annotations

import random

from moldau.base.ids import Uuid
from moldau.controller.security.acl_index import AclsByPattern
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata import RemoveAccessControlEntryRecord
from moldau.security.acl.bindings import AclBinding, AclBindingFilter, binding_of_record
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from tests.unit.security.acl.acls import record

NAMES = ("a", "ab", "abc", "b", "*")
PRINCIPALS = ("User:x", "User:y", "User:*")
HOSTS = ("*", "10.0.0.1")
OPERATIONS = (AclOperation.READ, AclOperation.ALL)


def some_binding(dice: random.Random) -> AclBinding:
    return AclBinding(
        dice.choice((ResourceType.TOPIC, ResourceType.GROUP)),
        dice.choice(NAMES),
        dice.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        dice.choice(PRINCIPALS),
        dice.choice(HOSTS),
        dice.choice(OPERATIONS),
        dice.choice((PermissionType.ALLOW, PermissionType.DENY)),
    )


def some_filter(dice: random.Random) -> AclBindingFilter:
    return AclBindingFilter(
        dice.choice((ResourceType.ANY, ResourceType.TOPIC, ResourceType.GROUP)),
        dice.choice((None, *NAMES)),
        dice.choice((PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)),
        dice.choice((None, *PRINCIPALS)),
        dice.choice((None, *HOSTS)),
        dice.choice((AclOperation.ANY, *OPERATIONS)),
        dice.choice((PermissionType.ANY, PermissionType.ALLOW)),
    )


def change(dice: random.Random, image: MetadataImage) -> MetadataDelta:
    """Add and remove some ACLs; the same binding may be stored under several ids, and an id be reused."""
    delta = MetadataDelta(image)
    for _ in range(dice.randrange(1, 8)):
        acl_id = Uuid(dice.randrange(40).to_bytes(16, "big"))
        if dice.random() < 0.6:
            delta.replay(record(some_binding(dice), acl_id))
        elif delta.acls.get(acl_id) is not None:
            delta.replay(RemoveAccessControlEntryRecord(id=acl_id))
    return delta


def test_the_index_selects_what_a_plain_list_does() -> None:
    dice = random.Random(14)
    for _ in range(30):
        image = MetadataImage.empty()
        index = AclsByPattern(image.acls)
        for offset in range(20):
            delta = change(dice, image)
            index.follow(delta)
            image = delta.apply(offset, 1)
            stored = {acl_id: binding_of_record(each) for acl_id, each in image.acls.items()}
            for wanted in (some_filter(dice) for _ in range(10)):
                plain = {acl_id for acl_id, binding in stored.items() if wanted.matches(binding)}
                found = [acl_id for _, ids in index.matching(wanted) for acl_id in ids]
                assert sorted(found) == sorted(plain)
            probe = some_binding(dice)
            assert (probe in index) == (probe in stored.values())
