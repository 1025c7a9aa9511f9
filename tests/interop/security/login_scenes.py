"""Logins over raw connections, right and wrong, for a comparison of both brokers: answers and closings.

A scene receives a `Probe`, which opens connections and records what the broker does with each frame.
"""

from __future__ import annotations

import base64
import re
import struct
import time
from collections.abc import Callable
from typing import Any

from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.protocol.schema import Message, Struct
from tests.harness.security.client_settings import unsecured_token
from tests.harness.security.login import plain_token
from tests.harness.security.scram import Scram
from tests.harness.security.secured_node import SESSION_MS, SecuredNode
from tests.harness.wire.wire import Wire

CLOSED = "the connection is closed"
SILENT = "no response"
#: Failed logins are answered after `connection.failed.authentication.delay.ms` (100); timers may be early.
_DELAY_SECONDS = 0.095
_PATIENCE_SECONDS = 4.0
_MAX_RECEIVE_SIZE = 524_288
METADATA = MetadataRequest(topics=[MetadataRequestTopic(name="any")])


class Probe:
    def __init__(self, node: SecuredNode) -> None:
        self._node = node
        self._wire: Wire | None = None
        self.transcript: list[tuple[str, Any]] = []

    @property
    def wire(self) -> Wire:
        assert self._wire is not None, "the scene has not opened a connection"
        return self._wire

    def open(self, listener: str = "SASL_PLAINTEXT") -> None:
        self.close()
        self._wire = Wire(self._node.address(listener), timeout=_PATIENCE_SECONDS)

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()

    def ask(self, label: str, request: Message, version: int) -> Any:
        """Send a request and record the answer, and whether a failed login was answered late."""
        begin = time.monotonic()
        answer: Any
        try:
            answer = self.wire.call(request, version)
        except ConnectionError:
            answer = CLOSED
        except TimeoutError:
            answer = SILENT
        self._note(label, answer, time.monotonic() - begin)
        return answer

    def frame(self, label: str, payload: bytes, *, size: int | None = None) -> bytes | None:
        """Send any bytes as a frame and record whether and with what the broker answers."""
        begin = time.monotonic()
        answer: Any
        try:
            self.wire.send(struct.pack(">i", len(payload) if size is None else size) + payload)
            answer = self.wire.read_frame()
        except TimeoutError:
            answer = SILENT
        except ConnectionError:
            answer = None
        self._note(label, CLOSED if answer is None else answer, time.monotonic() - begin)
        return answer if isinstance(answer, bytes) else None

    def ends(self, label: str) -> None:
        """Record whether the broker closes the connection now."""
        try:
            frame = self.wire.read_frame()
            self._note(label, CLOSED if frame is None else frame, 0)
        except TimeoutError:
            self._note(label, "open", 0)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(
            f"handshake {mechanism} v{version}", SaslHandshakeRequest(mechanism=mechanism), version
        )

    def token(self, label: str, token: bytes, version: int = 2) -> Any:
        return self.ask(f"{label} v{version}", SaslAuthenticateRequest(auth_bytes=token), version)

    def works(self, label: str = "a request after the login") -> None:
        answer = self.wire_answer(METADATA, 9)
        self.transcript.append((label, answer if isinstance(answer, str) else "an answer"))

    def wire_answer(self, request: Message, version: int) -> Any:
        try:
            return self.wire.call(request, version)
        except ConnectionError:
            return CLOSED
        except TimeoutError:
            return SILENT

    def _note(self, label: str, answer: Any, seconds: float) -> None:
        failed = not isinstance(answer, str) and getattr(answer, "error_code", 0) in (33, 34, 58)
        late = seconds >= _DELAY_SECONDS if failed else None
        self.transcript.append((label, (_normal(answer), late)))


def _normal(value: Any, name: str = "") -> Any:
    if isinstance(value, Struct):
        return {field.name: _normal(getattr(value, field.name), field.name) for field in value.FIELDS}
    if name == "session_lifetime_ms":
        return round(value / 5000)
    if isinstance(value, bytes | memoryview):
        text = bytes(value).decode("latin-1")
        return re.sub(r"\b([rsv])=[^,]+", r"\1=…", text)
    return sorted(map(_normal, value), key=repr) if isinstance(value, list) else value


def _api_versions(version: int, name: str = "test") -> tuple[Message, int]:
    return ApiVersionsRequest(client_software_name=name, client_software_version="1"), version


def _ask_versions(probe: Probe, label: str, version: int = 3, name: str = "test") -> None:
    """Record only the error of ApiVersions: the announced APIs are compared elsewhere."""
    answer = probe.wire_answer(*_api_versions(version, name))
    probe.transcript.append((label, answer if isinstance(answer, str) else answer.error_code))


# Order of requests.


def plain_logins(probe: Probe) -> None:
    for handshake_version, version in ((1, 0), (1, 1), (1, 2)):
        probe.open()
        _ask_versions(probe, "versions")
        probe.handshake("PLAIN", handshake_version)
        probe.token("login", plain_token("alice"), version)
        probe.works()


def bare_tokens(probe: Probe) -> None:
    probe.open()
    probe.handshake("PLAIN", 0)
    probe.frame("login", plain_token("alice"))
    probe.works()
    for label, token in (("wrong", plain_token("alice", "wrong")), ("garbage", b"\xff\xfe"), ("empty", b"")):
        probe.open()
        probe.handshake("PLAIN", 0)
        probe.frame(label, token)
    probe.open()
    probe.handshake("SCRAM-SHA-256", 0)
    scram = Scram("alice")
    first = probe.frame("first", scram.first())
    probe.frame("final", scram.final(first or b""))
    probe.works()


def versions_before_the_handshake(probe: Probe) -> None:
    probe.open()
    _ask_versions(probe, "first")
    _ask_versions(probe, "second")
    probe.ends("after the second")
    probe.open()
    _ask_versions(probe, "bad name", name="-bad name-")
    _ask_versions(probe, "after the bad name")
    probe.handshake()
    probe.token("login", plain_token("alice"))
    _ask_versions(probe, "after the login")
    _ask_versions(probe, "again after the login")


def unknown_versions(probe: Probe) -> None:
    probe.open()
    for label in ("first", "second"):
        probe.frame(label, struct.pack(">hhih", 18, 99, 7, -1))
    probe.handshake()
    probe.token("login", plain_token("alice"))
    probe.works()
    for key, version in ((17, 2), (17, -1), (36, 3), (36, -1)):
        probe.open()
        probe.frame(f"key {key} version {version}", struct.pack(">hhih", key, version, 7, -1) + b"\0\5PLAIN")
    probe.open()
    probe.handshake()
    probe.frame("authenticate version 3", struct.pack(">hhihb", 36, 3, 7, -1, 0) + b"\1\0")


def requests_out_of_order(probe: Probe) -> None:
    probe.open()
    probe.ask("metadata first", METADATA, 9)
    probe.open()
    probe.token("a token first", plain_token("alice"))
    probe.open()
    _ask_versions(probe, "versions")
    probe.ask("metadata after versions", METADATA, 9)
    for version in (0, 1):
        probe.open()
        probe.handshake("PLAIN", version)
        probe.ask("groups after the handshake", ListGroupsRequest(), 4)
        probe.ends("then")
    probe.open()
    probe.handshake()
    probe.handshake()
    probe.ends("after two handshakes")
    probe.open()
    probe.handshake()
    _ask_versions(probe, "versions after the handshake")
    probe.ends("then")


def requests_after_the_login(probe: Probe) -> None:
    for version in (0, 1):
        probe.open()
        probe.handshake()
        probe.token("login", plain_token("alice"))
        probe.handshake(version=version)
        probe.works()
    probe.token("a token", plain_token("alice"))
    probe.works("a request at last")


def unknown_mechanisms(probe: Probe) -> None:
    for version in (0, 1):
        for mechanism in ("CRAM-MD5", "plain", "", "GSSAPI", "SCRAM-SHA-1"):
            probe.open()
            probe.handshake(mechanism, version)
            probe.ends("then")


def odd_frames(probe: Probe) -> None:
    probe.open()
    probe.frame("too large", b"", size=_MAX_RECEIVE_SIZE + 1)
    probe.open()
    probe.frame("negative", b"", size=-1)
    probe.open()
    probe.frame("empty", b"")
    probe.open()
    probe.frame("a short header", b"\0\x11")
    probe.open()
    probe.frame("an unknown API", struct.pack(">hhih", 999, 0, 1, -1))
    probe.open()
    probe.wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    probe.ends("HTTP")
    probe.open()
    probe.wire.send(bytes.fromhex("160301020001"))
    probe.ends("TLS")
    probe.open()
    probe.handshake()
    probe.frame("a large token", b"\0" * 1000, size=_MAX_RECEIVE_SIZE + 1)


# Wrong credentials.


def wrong_plain_credentials(probe: Probe) -> None:
    tokens = {
        "wrong password": plain_token("alice", "wrong"),
        "unknown user": plain_token("mallory", "wrong"),
        "empty user": b"\0\0secret",
        "empty password": b"\0alice\0",
        "own authorization id": plain_token("alice", authorization_id="alice"),
        "other authorization id": plain_token("alice", authorization_id="bob"),
        "two fields": b"alice\0alice-secret",
        "four fields": b"\0alice\0alice-secret\0",
        "empty token": b"",
        "not UTF-8": b"\0\xff\0\xfe",
    }
    for label, token in tokens.items():
        probe.open()
        probe.handshake()
        probe.token(label, token)
        probe.ends("then")


def scram_logins(probe: Probe) -> None:
    for mechanism, hash_name in (("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")):
        for password in (None, "wrong"):
            probe.open()
            probe.handshake(mechanism)
            scram = Scram("alice", password, hash_name)
            answer = probe.token("first", scram.first())
            probe.token("final", scram.final(answer.auth_bytes))
            probe.ends("then")


def unknown_scram_users(probe: Probe) -> None:
    """Apache Kafka refuses the first message, which reveals that there is no such user; ours the second."""
    firsts = {
        "unknown user": Scram("mallory").first(),
        "unknown token": Scram("alice").first(extensions=",tokenauth=true"),
        "comma": Scram("a,b").first(),
        "equals sign": Scram("a=b").first(),
        "long name": Scram("n" * 200).first(),
    }
    for label, first in firsts.items():
        probe.open()
        probe.handshake("SCRAM-SHA-256")
        answer = probe.wire_answer(SaslAuthenticateRequest(auth_bytes=first), 2)
        if getattr(answer, "error_code", -1) == 0:
            final = Scram("mallory", "any").final(answer.auth_bytes)
            answer = probe.wire_answer(SaslAuthenticateRequest(auth_bytes=final), 2)
        probe.transcript.append((label, _normal(answer)))
        probe.ends("then")


def wrong_scram_messages(probe: Probe) -> None:
    firsts: dict[str, dict[str, str]] = {
        "channel binding": {"header": "p=tls-unique,,"},
        "channel binding supported": {"header": "y,,"},
        "own authorization id": {"header": "n,a=alice,"},
        "other authorization id": {"header": "n,a=bob,"},
        "extension": {"extensions": ",x=1"},
        "no nonce": {"nonce": ""},
        "odd nonce": {"nonce": "ä"},
    }
    for label, options in firsts.items():
        probe.open()
        probe.handshake("SCRAM-SHA-256")
        probe.token(label, Scram("alice").first(**options))
        probe.ends("then")
    for label, token in (
        ("garbage", b"\xff\0"),
        ("empty", b""),
        ("no fields", b"n,,"),
        ("final first", b"c=biws,r=a,p=b"),
    ):
        probe.open()
        probe.handshake("SCRAM-SHA-256")
        probe.token(label, token)
        probe.ends("then")


def wrong_scram_finals(probe: Probe) -> None:
    finals: dict[str, dict[str, str]] = {
        "other channel": {"channel": "eSws"},
        "longer nonce": {"nonce_suffix": "x"},
        "wrong proof": {"proof": base64.b64encode(bytes(32)).decode()},
    }
    for label, options in finals.items():
        probe.open()
        probe.handshake("SCRAM-SHA-256")
        scram = Scram("alice")
        answer = probe.token("first", scram.first())
        probe.token(label, scram.final(answer.auth_bytes, **options))
        probe.ends("then")


def odd_scram_names(probe: Probe) -> None:
    for name in ("a=b", "a=", "", "ä"):
        probe.open()
        probe.handshake("SCRAM-SHA-256")
        probe.token(f"name {name[:5]}", f"n,,n={name},r=fyko".encode())
        probe.ends("then")


def bearer_tokens(probe: Probe) -> None:
    def message(token: str, header: str = "n,,", more: str = "") -> bytes:
        return f"{header}\x01auth=Bearer {token}\x01{more}\x01".encode()

    good = unsecured_token("alice")
    for label, token in {
        "good": message(good),
        "own authorization id": message(good, "n,a=alice,"),
        "other authorization id": message(good, "n,a=bob,"),
        "extensions": message(good, more="traceId=123\x01"),
        "reserved extension": message(good, more="auth=123\x01"),
        "bad extension": message(good, more="a b=1\x01"),
        "expired": message(unsecured_token("alice", -3600)),
        "no token": message(""),
        "two parts": message(good.rpartition(".")[0]),
        "not a token": message("abc"),
        "bad base64": message("!.!."),
        "no auth": b"n,,\x01\x01",
        "garbage": b"\xff\xfe",
        "empty": b"",
    }.items():
        probe.open()
        probe.handshake("OAUTHBEARER")
        answer = probe.token(label, token)
        if getattr(answer, "error_code", -1) == 0 and answer.auth_bytes:
            probe.token("acknowledgement", b"\x01")
            probe.ends("then")
        else:
            probe.works("then")


# Sessions that end (KIP-368).


def _login(probe: Probe, user: str = "alice") -> None:
    probe.open("SESSIONS")
    probe.handshake()
    probe.token(f"login {user}", plain_token(user))
    probe.works()


def reauthentications(probe: Probe) -> None:
    for label, user in (("same user", "alice"), ("other user", "bob")):
        _login(probe)
        time.sleep(1.1)
        probe.handshake()
        probe.token(label, plain_token(user))
        probe.works("then")
    _login(probe)
    time.sleep(1.1)
    probe.handshake()
    probe.token("wrong password", plain_token("alice", "wrong"))
    probe.ends("then")
    _login(probe)
    time.sleep(1.1)
    probe.handshake("SCRAM-SHA-256")
    probe.token("other mechanism", Scram("alice").first())
    probe.ends("then")
    _login(probe)
    time.sleep(1.1)
    probe.handshake("CRAM-MD5")
    probe.ends("unknown mechanism")
    _login(probe)
    time.sleep(1.1)
    probe.handshake(version=0)
    probe.frame("bare token", plain_token("alice"))
    probe.works("then")


def early_reauthentication(probe: Probe) -> None:
    _login(probe)
    time.sleep(1.1)
    probe.handshake()
    probe.token("first", plain_token("alice"))
    probe.handshake()
    probe.works("after a second within a second")


def ended_sessions(probe: Probe) -> None:
    _login(probe)
    time.sleep(SESSION_MS / 1000 + 0.2)
    probe.works("after the end")
    _login(probe)
    time.sleep(SESSION_MS / 1000 + 0.2)
    probe.handshake()
    probe.token("late", plain_token("alice"))
    probe.works("after a late re-authentication")
    _login(probe)
    time.sleep(1.1)
    probe.handshake()
    probe.ask("groups during re-authentication", ListGroupsRequest(), 4)
    probe.ends("then")


SCENES: dict[str, Callable[[Probe], None]] = {
    scene.__name__.replace("_", " "): scene
    for scene in (
        plain_logins,
        bare_tokens,
        versions_before_the_handshake,
        unknown_versions,
        requests_out_of_order,
        requests_after_the_login,
        unknown_mechanisms,
        odd_frames,
        wrong_plain_credentials,
        scram_logins,
        unknown_scram_users,
        wrong_scram_messages,
        wrong_scram_finals,
        odd_scram_names,
        bearer_tokens,
        reauthentications,
        early_reauthentication,
        ended_sessions,
    )
}
