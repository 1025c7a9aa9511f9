"""Users of BASIC authentication: the forms of passwords, and where users are declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.definition import ConfigError
from moldau.http.authentication.users import Users


def users(*lines: str, tmp_path: Path) -> Users:
    file = tmp_path / "users"
    file.write_text("\n".join(lines))
    return Users.from_properties({"authentication.users.file": str(file)})


def test_forms_of_passwords(tmp_path: Path) -> None:
    found = users(
        "plain: a:b,role",
        "md5: MD5:5f4dcc3b5aa765d61d8327deb882cf99",
        "obfuscated: OBF:1v2j1uum1xtv1zej1zer1xtn1uvk1v1v",
        tmp_path=tmp_path,
    )
    plain = found.authenticate("plain", "a:b")
    assert plain is not None
    assert plain.roles == {"role"}
    assert found.authenticate("md5", "password") is not None
    assert found.authenticate("md5", "5f4dcc3b5aa765d61d8327deb882cf99") is None
    assert found.authenticate("obfuscated", "password") is not None
    assert found.authenticate("obfuscated", "passwort") is None
    assert found.authenticate("", "") is None


@pytest.mark.parametrize(("password", "message"), [("CRYPT:x", "CRYPT:"), ("OBF:%%", "not a valid OBF")])
def test_passwords_that_cannot_be_read(password: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        users(f"alice: {password}", tmp_path=tmp_path)


def test_the_jaas_file_of_confluents_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password.properties").write_text("fred: letmein,user,admin\n")
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        "SchemaRegistry-Props {\n  org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required\n"
        f'  file="{tmp_path}/password.properties"\n  debug="false";\n}};\n'
    )
    monkeypatch.setenv("SCHEMA_REGISTRY_OPTS", f"-Djava.security.auth.login.config={jaas}")
    found = Users.from_properties({"authentication.realm": "SchemaRegistry-Props"})
    user = found.authenticate("fred", "letmein")
    assert user is not None
    assert user.roles == {"user", "admin"}
