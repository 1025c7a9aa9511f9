"""The argument of `kafka-storage format --add-scram`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.config.broker.config import BrokerConfig
from moldau.protocol.stored.metadata import UserScramCredentialRecord
from moldau.quorum.bootstrap import read_bootstrap
from moldau.security.sasl.scram import make_credential
from moldau.server.startup.format import FormatError, FormatOptions, format_storage
from moldau.server.startup.scram_users import scram_record
from moldau.storage.disk.disk import PosixDisk
from tests.unit.config.node_properties import node

DISK = PosixDisk()


def record(argument: str) -> UserScramCredentialRecord:
    return scram_record(argument, random.Random(1))


def test_a_password_is_stored_as_keys() -> None:
    user = record("SCRAM-SHA-512=[name=alice,password=alice-secret,iterations=8192,salt=N3E=]")
    expected = make_credential("SCRAM-SHA-512", "alice-secret", 8192, b"7q")
    assert (user.name, user.mechanism, user.iterations, user.salt) == ("alice", 2, 8192, b"7q")
    assert (user.stored_key, user.server_key) == (expected.stored_key, expected.server_key)


def test_salt_and_iterations_have_defaults() -> None:
    user = record(' SCRAM-SHA-256=[name="bob",password="pass word=1"] ')
    assert (user.name, user.mechanism, user.iterations) == ("bob", 1, 4096)
    assert user.stored_key == make_credential("SCRAM-SHA-256", "pass word=1", 4096, user.salt).stored_key
    assert len(user.salt) > 20


def test_a_salted_password_is_taken_as_it_is() -> None:
    user = record('SCRAM-SHA-256=[name=alice,salt="N3E=",saltedpassword="YCE="]')
    assert (user.salt, len(user.stored_key)) == (b"7q", 32)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("nothing", "Failed to find equals sign in SCRAM argument"),
        ("SCRAM-SHA-1=[name=a]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
        ("SCRAM-SHA-256=name=a", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[hush]", "No equals sign found in a SCRAM component"),
        ("SCRAM-SHA-256=[password=hush]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "You must supply 'salt' with 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,password=hush,salt=?]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,password=hush,iterations=x]", "Failed to parse iterations count: x"),
        ("SCRAM-SHA-256=[name=a,password=hush,z=1,y=2]", "Unknown SCRAM configurations: y, z"),
        (
            "SCRAM-SHA-256=[name=a,password=hush,iterations=4095]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM_SHA_256",
        ),
        (
            "SCRAM-SHA-512=[name=a,password=hush,iterations=16385]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM_SHA_512",
        ),
    ],
)
def test_invalid_arguments_are_refused_without_the_password(argument: str, message: str) -> None:
    with pytest.raises(FormatError) as refused:
        record(argument)
    assert str(refused.value).startswith(message)
    assert "hush" not in str(refused.value)


def formatted(folder: Path, **options: object) -> list[str]:
    lines: list[str] = []
    config = BrokerConfig(node(log_dirs=str(folder / "data")))
    chosen = FormatOptions(**options)  # type: ignore[arg-type]
    format_storage(DISK, ManualClock(), random.Random(1), config, chosen, lines.append)
    return lines


def test_users_follow_the_feature_levels_in_the_bootstrap_records(tmp_path: Path) -> None:
    arguments = ["SCRAM-SHA-256=[name=alice,password=hush]", "SCRAM-SHA-512=[name=alice,password=hush]"]
    lines = formatted(tmp_path, scram_credentials=arguments)
    stored = read_bootstrap(DISK, str(tmp_path / "data"))[-2:]
    assert [
        (each.name, each.mechanism) for each in stored if isinstance(each, UserScramCredentialRecord)
    ] == [
        ("alice", 1),
        ("alice", 2),
    ]
    assert "UserScramCredentialRecord(name='alice', mechanism=1, salt=[hidden]" in lines[0]
    assert "hush" not in lines[0]


def test_an_old_release_has_no_users(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"SCRAM is only supported in metadata\.version 3\.5-IV2 or later"):
        formatted(tmp_path, release_version="3.4", scram_credentials=["SCRAM-SHA-256=[name=a,password=hush]"])
