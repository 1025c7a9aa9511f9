"""Clients that are not known cost little and learn nothing: an authenticated client is served meanwhile."""

from __future__ import annotations

import contextlib
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.security.sasl.scram import ScramClient
from moldau.testing import Cluster
from tests.harness.nodes.process import ON_LINUX, anonymous_memory, open_files
from tests.harness.nodes.sasl import CLIENT_PREFIX, PASSWORD, USER, sasl_config
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.integration.sasl.test_login_rules import METADATA, SASL_AUTHENTICATION_FAILED, handshake, log_in
from tests.integration.sasl.test_oauthbearer import MODULE
from tests.integration.sasl.test_scram import add_user

SCRAM_256 = "SCRAM-SHA-256"
MECHANISMS = ("PLAIN", SCRAM_256, "OAUTHBEARER")
MEGABYTE = 1_000_000
linux_only = pytest.mark.skipif(
    not ON_LINUX, reason="memory and files of a process are read from Linux's /proc"
)


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    config = sasl_config(
        ",".join(MECHANISMS),
        extra={
            f"{CLIENT_PREFIX}oauthbearer.sasl.jaas.config": f"{MODULE} required;",
            "connection.failed.authentication.delay.ms": 10,
            # Else clients wait for a second when many connect at once.
            "socket.listen.backlog.size": 3000,
        },
    )
    with Cluster(config=config) as cluster:
        add_user(cluster, SCRAM_256, USER, PASSWORD)
        yield cluster
        printed = cluster.log_file.read_text()
    assert "Traceback" not in printed
    assert PASSWORD not in printed


@pytest.fixture
def known(node: Cluster) -> Iterator[Wire]:
    """A client that has logged in before the attack."""
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        log_in(wire)
        yield wire


def is_served(wire: Wire) -> float:
    """Return how long a request takes."""
    begin = time.monotonic()
    assert wire.call(METADATA, 12).brokers
    return time.monotonic() - begin


# Malformed tokens.


def tokens_of(mechanism: str, source: random.Random) -> bytes:
    good = {
        "PLAIN": f"\0{USER}\0guess".encode(),
        SCRAM_256: f"n,,n={USER},r=abcdef".encode(),
        "OAUTHBEARER": b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.\x01\x01",
    }[mechanism]
    data = bytearray(good)
    for _ in range(source.randrange(6)):
        position = source.randrange(len(data))
        data[position : position + source.randrange(2)] = source.randbytes(source.randrange(4))
    return bytes(data) if source.random() < 0.8 else source.randbytes(source.randrange(300))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("seed", range(3))
def test_random_tokens_never_log_in(node: Cluster, known: Wire, mechanism: str, seed: int) -> None:
    source = random.Random(f"{mechanism} {seed}")
    for _ in range(25):
        with Wire(node.bootstrap_servers, timeout=20) as wire:
            assert handshake(wire, mechanism) == 0
            for _ in range(3):
                try:
                    answer = wire.call(SaslAuthenticateRequest(auth_bytes=tokens_of(mechanism, source)), 2)
                except (ConnectionError, BrokenPipeError):
                    break
                if answer.error_code:
                    assert answer.error_code == SASL_AUTHENTICATION_FAILED
            with contextlib.suppress(ConnectionError, BrokenPipeError):
                wire.post(METADATA, 12)
            frame = None
            with contextlib.suppress(ConnectionError, TimeoutError):
                frame = wire.read_frame()
            assert frame is None or len(frame) < 300, "no metadata without a login"
    is_served(known)


@pytest.mark.parametrize("seed", range(5))
def test_random_frames_before_a_login_are_not_served(node: Cluster, known: Wire, seed: int) -> None:
    source = random.Random(seed)
    for _ in range(30):
        with Wire(node.bootstrap_servers, timeout=20) as wire, contextlib.suppress(OSError):
            for _ in range(source.randrange(1, 4)):
                frame = source.randbytes(source.randrange(60))
                if source.random() < 0.7:
                    key = source.choice((17, 18, 36, 3, 0))
                    frame = key.to_bytes(2, "big") + source.randrange(5).to_bytes(2, "big") + frame
                wire.send_frame(frame)
    is_served(known)


@pytest.mark.parametrize("length", [3000, 100_000])
@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM_256])
def test_long_names_are_answered_in_time(node: Cluster, mechanism: str, length: int) -> None:
    """Apache Kafka neither answers nor closes for 3,000 letters of SCRAM."""
    name = "a" * length
    message = f"\0{name}\0x" if mechanism == "PLAIN" else f"n,,n={name},r=abc"
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        handshake(wire, mechanism)
        begin = time.monotonic()
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=message.encode()), 2)
        assert time.monotonic() - begin < 5
        assert answer.error_code == (SASL_AUTHENTICATION_FAILED if mechanism == "PLAIN" else 0)


# Replay, downgrade and enumeration.


def scram(node: Cluster, messages: Callable[[bytes | None], bytes | None]) -> list[int]:
    """Exchange SCRAM messages; return the error codes."""
    codes = []
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        handshake(wire, SCRAM_256)
        message = messages(None)
        while message is not None:
            answer = wire.call(SaslAuthenticateRequest(auth_bytes=message), 2)
            codes.append(int(answer.error_code))
            if answer.error_code:
                break
            message = messages(answer.auth_bytes)
    return codes


def test_a_recorded_login_cannot_be_replayed(node: Cluster) -> None:
    client = ScramClient(SCRAM_256, USER, PASSWORD, random.SystemRandom())
    recorded: list[bytes] = []

    def record(challenge: bytes | None) -> bytes | None:
        message = client.first() if challenge is None else client.evaluate(challenge)
        if message is not None:
            recorded.append(message)
        return message

    assert scram(node, record) == [0, 0]
    again = iter(recorded)
    assert scram(node, lambda _: next(again, None)) == [0, SASL_AUTHENTICATION_FAILED]


def test_a_failed_mechanism_cannot_be_exchanged_for_a_weaker_one(node: Cluster) -> None:
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        handshake(wire, SCRAM_256)
        answer = wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == 34
        assert wire.is_closed_by_peer()


def test_channel_binding_cannot_be_pretended(node: Cluster) -> None:
    """`y`: the client supports it and believes that the server does not, which an attacker may have said."""
    for header in (b"y,,", b"p=tls-unique,,"):
        assert scram(node, lambda challenge, header=header: header + b"n=alice,r=abc") == [
            SASL_AUTHENTICATION_FAILED
        ]


def answer_times(node: Cluster, mechanism: str, names: list[str]) -> dict[str, float]:
    """Return the shortest time of a failed login by name; other work on the machine only adds to it."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(25):
        for name in names:
            with Wire(node.bootstrap_servers, timeout=20) as wire:
                handshake(wire, mechanism)
                begin = time.monotonic()
                if mechanism == "PLAIN":
                    wire.call(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0wrong".encode()), 2)
                else:
                    wire.call(SaslAuthenticateRequest(auth_bytes=f"n,,n={name},r=abc".encode()), 2)
                times[name].append(time.monotonic() - begin)
    return {name: min(each) for name, each in times.items()}


@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM_256])
def test_the_time_of_an_answer_does_not_tell_whether_a_user_exists(node: Cluster, mechanism: str) -> None:
    times = answer_times(node, mechanism, [USER, "nobody"])
    assert abs(times[USER] - times["nobody"]) < 0.004, times


def test_the_challenge_does_not_tell_whether_a_user_exists(node: Cluster) -> None:
    """Salt and iterations of an unknown user have the form of those of a known one."""
    forms = set()
    for name in (USER, "nobody", "somebody-else"):
        with Wire(node.bootstrap_servers, timeout=20) as wire:
            handshake(wire, SCRAM_256)
            answer = wire.call(SaslAuthenticateRequest(auth_bytes=f"n,,n={name},r=abc".encode()), 2)
            salt = re.match(r"r=abc[^,]+,s=([^,]+),i=4096$", answer.auth_bytes.decode())
            assert salt is not None
            forms.add(len(salt[1]) // 8)
    assert len(forms) <= 2


# Floods.


@linux_only
def test_silent_connections_leave_a_known_client_served(node: Cluster, known: Wire) -> None:
    """There are 2,000 of them at most: the oldest make room for new ones."""
    before = anonymous_memory(node.pid)
    with contextlib.ExitStack() as stack:
        first = [stack.enter_context(Wire(node.bootstrap_servers, timeout=20)) for _ in range(50)]
        for _ in range(2000):
            stack.enter_context(Wire(node.bootstrap_servers))
        assert all(wire.is_closed_by_peer() for wire in first)
        eventually(lambda: open_files(node.pid) > 2000, what="the node has accepted the others")
        assert max(is_served(known) for _ in range(20)) < 1
        with Wire(node.bootstrap_servers, timeout=20) as newcomer:
            log_in(newcomer)
            is_served(newcomer)
        grown = anonymous_memory(node.pid) - before
        assert grown < 60 * MEGABYTE, f"{grown} bytes for 2,000 connections"
    eventually(lambda: open_files(node.pid) < 500, what="the node has closed them")


def incomplete_frame(wire: Wire) -> None:
    wire.send((524_000).to_bytes(4, "big") + bytes(500_000))


def scram_message(text: str) -> Callable[[Wire], None]:
    def send(wire: Wire) -> None:
        handshake(wire, SCRAM_256)
        wire.post(SaslAuthenticateRequest(auth_bytes=(text % ("a" * 500_000)).encode()), 2)

    return send


@linux_only
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(incomplete_frame, id="incomplete frame"),
        pytest.param(scram_message("n,,n=%s,r=abc"), id="SCRAM name"),
        pytest.param(scram_message("n,,n=alice,r=%s"), id="SCRAM nonce"),
    ],
)
def test_large_frames_before_a_login_are_bounded_together(
    node: Cluster, known: Wire, attack: Callable[[Wire], None]
) -> None:
    """Each client sends half a megabyte and waits."""
    before = anonymous_memory(node.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(600):
            wire = stack.enter_context(Wire(node.bootstrap_servers, timeout=20))
            with contextlib.suppress(OSError):
                attack(wire)
        is_served(known)

        def is_bounded() -> bool:
            # 128 MB, and the gaps that freed memory leaves in the heap.
            return anonymous_memory(node.pid) - before < 300 * MEGABYTE

        eventually(is_bounded, timeout=20, what="the largest connections are closed")


def test_long_names_of_client_software_are_refused(node: Cluster) -> None:
    for name, code in (("a" * 1000, 0), ("a" * 1001, ErrorCode.INVALID_REQUEST)):
        with Wire(node.bootstrap_servers, timeout=20) as wire:
            versions = ApiVersionsRequest(client_software_name=name, client_software_version="1")
            assert wire.call(versions, 3).error_code == code


def test_a_flood_of_invalid_frames_does_not_fill_the_log(node: Cluster, known: Wire) -> None:
    logged = len(node.log_file.read_text())
    for size in range(300):
        with Wire(node.bootstrap_servers, timeout=20) as wire, contextlib.suppress(OSError):
            wire.send((2_000_000_000 + size).to_bytes(4, "big"))
            assert wire.is_closed_by_peer()
    is_served(known)
    lines = node.log_file.read_text()[logged:].count("closing connection from")
    assert 0 < lines < 30


@linux_only
def test_a_flood_of_failed_logins_leaves_a_known_client_served(node: Cluster, known: Wire) -> None:
    before = anonymous_memory(node.pid)
    logged = len(node.log_file.read_text())
    ended = threading.Event()
    failed: list[int] = []

    def attack() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError), Wire(node.bootstrap_servers, timeout=20) as wire:
                handshake(wire)
                answer = wire.call(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2)
                failed.append(int(answer.error_code))

    attackers = [threading.Thread(target=attack) for _ in range(16)]
    for each in attackers:
        each.start()
    try:
        end = time.monotonic() + 4
        slowest = 0.0
        while time.monotonic() < end:
            slowest = max(slowest, is_served(known))
        with Wire(node.bootstrap_servers, timeout=20) as newcomer:
            log_in(newcomer)
    finally:
        ended.set()
        for each in attackers:
            each.join(30)
    logging.getLogger(__name__).info("%d failed logins, slowest answer %.3f s", len(failed), slowest)
    assert len(failed) > 100 and set(failed) == {SASL_AUTHENTICATION_FAILED}
    assert slowest < 1
    lines = node.log_file.read_text()[logged:].count("Failed authentication")
    assert 0 < lines < 20, "a flood does not fill the log"
    assert anonymous_memory(node.pid) - before < 30 * MEGABYTE
    eventually(lambda: open_files(node.pid) < 300, what="their connections are closed")
