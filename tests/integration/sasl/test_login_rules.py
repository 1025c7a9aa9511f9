"""The rules of a login over real sockets, request by request: what no client library sends."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.testing import Cluster
from tests.harness.nodes.sasl import PASSWORD, USER, sasl_config
from tests.harness.wire.wire import Wire

UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED = 33, 34, 58
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
GOOD = f"\0{USER}\0{PASSWORD}".encode()
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
METADATA = MetadataRequest(topics=[])


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    limit = {"listener.name.plaintext.sasl.server.max.receive.size": 2000}
    config = sasl_config("PLAIN,SCRAM-SHA-256", extra=limit)
    with Cluster(config=config) as cluster:
        yield cluster


@pytest.fixture
def wire(node: Cluster) -> Iterator[Wire]:
    with Wire(node.bootstrap_servers, timeout=20) as connection:
        yield connection


def handshake(wire: Wire, mechanism: str = "PLAIN") -> int:
    return int(wire.call(SaslHandshakeRequest(mechanism=mechanism), 1).error_code)


def log_in(wire: Wire, token: bytes = GOOD) -> int:
    """Return the lifetime of the session."""
    assert handshake(wire) == 0
    answer = wire.call(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert answer.error_code == 0, answer
    return int(answer.session_lifetime_ms)


@pytest.mark.parametrize("listener", ["client", "controller"])
def test_sasl_apis_are_announced_on_every_listener(node: Cluster, listener: str) -> None:
    port = node.port if listener == "client" else node.controller_port
    with Wire(f"127.0.0.1:{port}", timeout=20) as wire:
        announced = {each.api_key for each in wire.call(VERSIONS, 4).api_keys}
    assert {SASL_HANDSHAKE, SASL_AUTHENTICATE} <= announced


def test_a_login_with_handshake_version_1(wire: Wire) -> None:
    assert wire.call(VERSIONS, 4).error_code == 0
    log_in(wire)
    assert wire.call(METADATA, 12).brokers


def test_a_login_with_handshake_version_0_and_bare_tokens(wire: Wire) -> None:
    assert wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    wire.send_frame(GOOD)
    assert wire.read_frame() == b""
    assert wire.call(METADATA, 12).brokers


def test_all_requests_of_a_login_may_be_sent_at_once(wire: Wire) -> None:
    """Each is handled after the response to the one before."""
    ids = [
        wire.post(VERSIONS, 4),
        wire.post(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        wire.post(SaslAuthenticateRequest(auth_bytes=GOOD), 2),
        wire.post(DescribeClusterRequest(), 1),
    ]
    assert wire.answer(VERSIONS, 4, ids[0]).error_code == 0
    assert wire.answer(SaslHandshakeRequest(), 1, ids[1]).error_code == 0
    assert wire.answer(SaslAuthenticateRequest(), 2, ids[2]).error_code == 0
    assert wire.answer(DescribeClusterRequest(), 1, ids[3]).brokers


def test_a_request_before_the_login_is_not_answered(wire: Wire) -> None:
    wire.post(METADATA, 12)
    assert wire.is_closed_by_peer()


def test_a_second_api_versions_is_not_answered(wire: Wire) -> None:
    wire.call(VERSIONS, 4)
    wire.post(VERSIONS, 4)
    assert wire.is_closed_by_peer()


def test_an_unknown_mechanism_is_refused_with_the_list(wire: Wire) -> None:
    answer = wire.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    assert answer.error_code == UNSUPPORTED_SASL_MECHANISM
    assert sorted(answer.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
    assert wire.is_closed_by_peer()


def test_a_wrong_password_is_answered_late_and_closes(wire: Wire) -> None:
    handshake(wire)
    begin = time.monotonic()
    answer = wire.call(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    assert time.monotonic() - begin >= 0.1, "connection.failed.authentication.delay.ms"
    assert answer.error_code == SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert wire.is_closed_by_peer()


def test_frames_are_limited_until_the_login(wire: Wire) -> None:
    handshake(wire)
    wire.send((2001).to_bytes(4, "big"))
    assert wire.is_closed_by_peer()


def test_frames_after_the_login_may_be_large(wire: Wire) -> None:
    log_in(wire)
    many = MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{n}") for n in range(200)])
    assert len(wire.call(many, 12).topics) == 200


def test_a_handshake_after_the_login_is_an_illegal_state(wire: Wire) -> None:
    log_in(wire)
    assert handshake(wire) == ILLEGAL_SASL_STATE
    assert wire.call(SaslAuthenticateRequest(auth_bytes=GOOD), 2).error_code == ILLEGAL_SASL_STATE
    assert wire.call(METADATA, 12).brokers, "the connection stays open"


def test_a_listener_without_sasl_refuses_a_handshake() -> None:
    with Cluster() as plain, Wire(plain.bootstrap_servers, timeout=20) as wire:
        assert handshake(wire) == ILLEGAL_SASL_STATE


def test_unknown_users_and_wrong_passwords_of_scram_look_the_same(node: Cluster) -> None:
    """The first answer has a salt for any name, and the same one each time."""
    salts = []
    for _ in range(2):
        with Wire(node.bootstrap_servers, timeout=20) as wire:
            handshake(wire, "SCRAM-SHA-256")
            first = wire.call(SaslAuthenticateRequest(auth_bytes=b"n,,n=nobody,r=abc"), 2)
            assert first.error_code == 0
            nonce, salt, _ = first.auth_bytes.decode().split(",", 2)
            salts.append(salt)
            final = f"c=biws,{nonce},p=".encode() + b"A" * 43 + b"="
            answer = wire.call(SaslAuthenticateRequest(auth_bytes=final), 2)
            assert answer.error_code == SASL_AUTHENTICATION_FAILED
            assert answer.error_message == (
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                "SCRAM-SHA-256"
            )
    assert salts[0] == salts[1]
