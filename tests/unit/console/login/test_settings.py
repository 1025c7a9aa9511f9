"""Settings of the login with OpenID Connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import KafkaError
from moldau.console.login.roles import Role
from moldau.console.settings import ConsoleSettings, Login

PLAIN = {"bootstrap.servers": "localhost:9092"}
OIDC = {
    **PLAIN,
    "login": "oidc",
    "oidc.issuer.url": "https://id.example/realms/kafka",
    "oidc.client.id": "console",
}


def test_it_is_a_login_for_other_addresses_and_its_host_is_known() -> None:
    given = {
        **OIDC,
        "listeners": "http://0.0.0.0:8080",
        "oidc.redirect.base.url": "https://Kafka.example:8443",
    }
    settings = ConsoleSettings.from_properties(given)
    assert settings.login is Login.OIDC and settings.oidc is not None
    assert settings.oidc.scopes == "openid profile email"
    assert settings.oidc.rules.values[Role.EDITOR] == {"editor"}
    assert "kafka.example" in settings.hosts


def test_the_secret_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("from the file\n")
    monkeypatch.setenv("SECRET_OF_CONSOLE", "from the environment")
    for name, value, secret in (
        ("oidc.client.secret", "given", "given"),
        ("oidc.client.secret", "${env:SECRET_OF_CONSOLE}", "from the environment"),
        ("oidc.client.secret.file", str(file), "from the file"),
        ("oidc.client.secret", "", ""),
    ):
        settings = ConsoleSettings.from_properties({**OIDC, name: value})
        assert settings.oidc is not None and settings.oidc.client_secret == secret
        assert not secret or secret not in repr(settings)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"oidc.issuer.url": ""}, r"oidc\.issuer\.url"),
        ({"oidc.client.id": ""}, r"oidc\.client\.id"),
        ({"oidc.issuer.url": "http://id.example"}, "https only"),
        ({"oidc.issuer.url": "id.example"}, "https://host/path"),
        ({"oidc.issuer.url": "https://[::1"}, "https://host/path"),
        ({"oidc.scopes": "profile"}, "openid"),
        ({"oidc.redirect.base.url": "https://kafka.example/console"}, "without a path"),
        ({"oidc.redirect.base.url": "kafka.example"}, "without a path"),
        ({"oidc.client.secret": "${env:NO_SUCH_VARIABLE}"}, "NO_SUCH_VARIABLE is not set"),
        ({"oidc.client.secret.file": "/nope"}, "/nope cannot be read"),
        ({"oidc.client.secret.file": "/nope", "oidc.client.secret": "x"}, "either"),
        ({"login": "saml"}, "auto, none, scram, oidc"),
    ],
)
def test_invalid_settings_are_named(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(KafkaError, match=reason):
        ConsoleSettings.from_properties({**OIDC, **changes})
