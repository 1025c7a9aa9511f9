"""Config providers: variables of files, folders and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.providers import ConfigProviders, resolved

PACKAGE = "org.apache.kafka.common.config.provider."


def declared(name: str, provider: str, **params: str) -> dict[str, str]:
    return {
        "config.providers": name,
        f"config.providers.{name}.class": f"{PACKAGE}{provider}",
        **{
            f"config.providers.{name}.param.{each.replace('_', '.')}": value for each, value in params.items()
        },
    }


def test_files_folders_and_the_environment_provide_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.properties").write_text("password=p:w}d\n")
    (tmp_path / "token").write_text("t0ken")
    monkeypatch.setenv("RACK", "r1")
    config = {
        "config.providers": "file, dir,env",
        "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
        "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
        "config.providers.env.class": "EnvVarConfigProvider",
        "jaas": f'x password="${{file:{tmp_path}/secrets.properties:password}}";',
        "token": f"${{dir:{tmp_path}:token}}",
        "rack": "${env:RACK}-${other:X}",
    }
    values = resolved(config, ValueError, strict=True)
    assert values["jaas"] == 'x password="p:w}d";'
    assert values["token"] == "t0ken"
    assert values["rack"] == "r1-${other:X}"


def test_without_providers_nothing_is_a_variable() -> None:
    assert resolved({"rack": "${env:PATH}"}, ValueError) == {"rack": "${env:PATH}"}


def test_a_missing_value_is_an_error_only_if_strict(tmp_path: Path) -> None:
    config = declared("env", "EnvVarConfigProvider") | {"rack": "${env:NOT_THERE_AT_ALL}"}
    assert resolved(config, ValueError)["rack"] == "${env:NOT_THERE_AT_ALL}"
    with pytest.raises(ValueError, match="NOT_THERE_AT_ALL} has no value"):
        resolved(config, ValueError, strict=True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (declared("x", "NoSuchProvider"), "config.providers.x.class: Class could not be found"),
        (
            declared("file", "FileConfigProvider") | {"a": "${file:/no/such/file:k}"},
            "Could not read properties",
        ),
        (declared("env", "EnvVarConfigProvider", allowlist_pattern="("), "allowlist.pattern"),
        (declared("env", "EnvVarConfigProvider") | {"a": "${env:some/path:K}"}, "have no path"),
    ],
    ids=["class", "file", "pattern", "path"],
)
def test_invalid_providers_are_named(config: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolved(config, ValueError)


def test_only_allowed_paths_and_names_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.properties").write_text("k=v\n")
    file = declared("file", "FileConfigProvider", allowed_paths=str(tmp_path / "other"))
    assert resolved(file | {"a": f"${{file:{tmp_path}/s.properties:k}}"}, ValueError)["a"].startswith("${")
    folder = declared("dir", "DirectoryConfigProvider")
    assert resolved(folder | {"a": f"${{dir:{tmp_path}/x:../s.properties}}"}, ValueError)["a"].startswith(
        "${"
    )
    monkeypatch.setenv("OTHER", "x")
    environment = declared("env", "EnvVarConfigProvider", allowlist_pattern="MY_.*")
    assert resolved(environment | {"a": "${env:OTHER}"}, ValueError)["a"] == "${env:OTHER}"


def test_secrets_are_hidden_in_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "s3cret")
    config = declared("env", "EnvVarConfigProvider") | {"password": "${env:PASSWORD}"}
    providers = ConfigProviders(config, ValueError)
    providers.resolve(config)
    assert providers.hide("login with s3cret failed") == "login with [hidden] failed"
