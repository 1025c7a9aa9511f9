"""The mechanisms of a listener from its configs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.config.definition import ConfigError
from moldau.security.sasl.servers import SaslServers

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


class NoCredentials:
    def scram(self, mechanism: str, user: str) -> None:
        return None

    def token(self, mechanism: str, token_id: str) -> None:
        return None


def servers(
    mechanisms: Sequence[str], configs: Mapping[tuple[str, str | None], str], opts: str = ""
) -> SaslServers:
    credentials: Any = NoCredentials()
    return SaslServers.of(
        "CLIENTS",
        mechanisms,
        lambda name, mechanism: configs.get((name, mechanism)),
        credentials,
        credentials,
        ManualClock(),
        random.Random(1),
        {"KAFKA_OPTS": opts},
    )


def jaas(mechanism: str, entry: str) -> dict[tuple[str, str | None], str]:
    return {("sasl.jaas.config", mechanism): entry}


def test_each_mechanism_has_an_entry_of_its_own() -> None:
    configs = {**jaas("PLAIN", PLAIN), **jaas("SCRAM-SHA-512", SCRAM), **jaas("OAUTHBEARER", OAUTH)}
    made = servers(["SCRAM-SHA-512", "PLAIN", "OAUTHBEARER", "PLAIN"], configs)
    assert made.mechanisms == ("SCRAM-SHA-512", "PLAIN", "OAUTHBEARER")
    plain = made.create("PLAIN")
    plain.evaluate(b"\0alice\0secret")
    assert str(plain.principal) == "User:alice"
    with pytest.raises(KeyError):
        made.create("GSSAPI")


@pytest.mark.parametrize("section", ["clients.KafkaServer", "KafkaServer"])
def test_entries_may_come_from_the_jaas_file(tmp_path: Path, section: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f"Other {{ {SCRAM} }}; {section} {{ {SCRAM} {PLAIN} }};")
    made = servers(["PLAIN", "SCRAM-SHA-256"], {}, f"-Djava.security.auth.login.config={file}")
    assert made.create("PLAIN").evaluate(b"\0alice\0secret") == b""


@pytest.mark.parametrize(
    ("mechanisms", "configs", "reason"),
    [
        ([], {}, "no SASL mechanisms are enabled"),
        (["MAGIC"], {}, "SASL mechanism MAGIC is not supported"),
        (["PLAIN"], {}, "Could not find a 'KafkaServer' or 'clients.KafkaServer' entry"),
        (["PLAIN"], jaas("PLAIN", SCRAM), "needs the login module"),
        (["OAUTHBEARER"], jaas("OAUTHBEARER", PLAIN), "needs the login module"),
        (["PLAIN"], jaas("PLAIN", PLAIN + PLAIN), "contains 2 login modules"),
        (
            ["PLAIN"],
            {**jaas("PLAIN", PLAIN), ("sasl.server.callback.handler.class", "PLAIN"): "com.example.Ldap"},
            "com.example.Ldap is not supported for PLAIN",
        ),
        (
            ["OAUTHBEARER"],
            {
                **jaas("OAUTHBEARER", OAUTH),
                ("sasl.oauthbearer.jwks.endpoint.url", "OAUTHBEARER"): "https://a",
            },
            "Listener CLIENTS: .*is not allowed",
        ),
    ],
)
def test_mistakes_name_the_listener_and_show_no_secret(
    mechanisms: list[str], configs: dict[tuple[str, str | None], str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        servers(mechanisms, configs)
    assert "secret" not in str(refused.value)


def test_decoys_are_the_same_on_all_nodes_with_a_shared_secret() -> None:
    """A client that tries several nodes sees one salt of an unknown user."""
    configs = {**jaas("SCRAM-SHA-256", SCRAM), ("delegation.token.secret.key", None): "shared"}
    salts = set()
    for _ in range(2):
        first = servers(["SCRAM-SHA-256"], configs).create("SCRAM-SHA-256").evaluate(b"n,,n=nobody,r=abc")
        salts.add(first.split(b",")[1])
    assert len(salts) == 1
