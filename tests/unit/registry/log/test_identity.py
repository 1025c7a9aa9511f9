"""Who leads: the JSON of Confluent's instances, and the choice among the members."""

from __future__ import annotations

import json
import socket

import pytest

from moldau.config.definition import ConfigError
from moldau.registry.log.identity import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    InvalidIdentity,
    assign,
    decode_assignment,
    decode_identity,
    encode_identity,
)
from moldau.registry.wiring import identity_of

A, B, C = (Identity(host, 8081) for host in "abc")


def test_metadata_and_assignment_are_those_of_confluents_instances() -> None:
    assert encode_identity(A) == (
        b'{"version":1,"host":"a","port":8081,"master_eligibility":true,"scheme":"http","leader":false}'
    )
    assert Assignment(0, "m1", A).encode() == (
        b'{"version":1,"error":0,"master":"m1","master_identity":'
        b'{"version":1,"host":"a","port":8081,"master_eligibility":true,"scheme":"http","leader":false}}'
    )
    assert Assignment(0, None, None).encode() == b'{"version":1,"error":0}'
    assert decode_assignment(Assignment(1, "m", B).encode()) == Assignment(1, "m", B)
    assert decode_assignment(b'{"version":1,"error":0}') == Assignment(0, None, None)
    older = json.dumps({"version": 1, "host": "a", "port": 8081, "master_eligibility": True, "more": 1})
    assert decode_identity(older.encode()) == A


def test_the_smallest_eligible_url_leads_unless_another_leads_already() -> None:
    assert assign({"m1": C, "m2": B, "m3": A}, sticky=True).leader == A
    leading = Identity("c", 8081, leads=True)
    assert assign({"m1": leading, "m2": A}, sticky=True).member_id == "m1"
    assert assign({"m1": leading, "m2": A}, sticky=False).member_id == "m2"
    two = {"m1": leading, "m2": A, "m3": Identity("b", 8081, leads=True)}
    assert assign(two, sticky=True).leader == A
    ineligible = Identity("a", 8081, eligible=False, leads=True)
    assert assign({"m1": ineligible, "m2": B}, sticky=True).leader == B
    assert assign({"m1": ineligible}, sticky=True) == Assignment(0, None, None)


def test_members_with_the_same_url_are_an_error() -> None:
    assert assign({"m1": A, "m2": A}, sticky=True).error == DUPLICATE_URLS
    assert assign({"m1": A, "m2": Identity("a", 8081, scheme="https")}, sticky=True).error == 0


@pytest.mark.parametrize("data", [b"", b"\0\1", b"[]", b'{"host": "a"}', b'{"host":"a","port":"x"}'])
def test_members_that_are_no_registries(data: bytes) -> None:
    with pytest.raises(InvalidIdentity):
        decode_identity(data)


def test_an_instance_stays_the_same_when_it_leads() -> None:
    assert A.is_same(Identity("a", 8081, leads=True))
    assert not A.is_same(B)
    assert not A.is_same(None)
    assert Identity("::1", 1).url == "http://[::1]:1"


def test_an_instance_announces_the_listener_of_the_protocol_between_instances() -> None:
    urls = ["http://10.0.0.1:8081", "https://10.0.0.1:8443"]
    assert identity_of({}, urls).url == "http://10.0.0.1:8081"
    assert identity_of({"inter.instance.protocol": "https"}, urls).url == "https://10.0.0.1:8443"
    named = {"host.name": "registry.example", "host.port": "80", "master.eligibility": "false"}
    announced = identity_of(named, urls)
    assert (announced.url, announced.eligible) == ("http://registry.example:80", False)
    assert identity_of({}, ["http://0.0.0.0:8081"]).host == socket.gethostname()
    with pytest.raises(ConfigError, match="no listener has this protocol"):
        identity_of({"inter.instance.protocol": "https"}, urls[:1])
