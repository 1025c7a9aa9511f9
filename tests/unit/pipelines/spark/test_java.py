"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.pipelines.spark import java as module
from moldau.pipelines.spark.java import Java, JavaMissing, find_java, java_at
from moldau.pipelines.spark.launching import chosen_python, quick_python, quiet_java


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
    monkeypatch.setattr(module, "_packaged", lambda: None)


@pytest.mark.parametrize(
    ("version", "release", "written"),
    [("17.0.15", 17, True), ("1.8.0_392", 8, False), ("21", 21, False), ("25.0.2", 25, True)],
)
def test_the_release_is_read_or_asked_for(tmp_path: Path, version: str, release: int, written: bool) -> None:
    found = java_at(make_home(tmp_path / "jdk", version, written=written))
    assert found is not None
    assert found.release == release


def test_java_home_is_obeyed(tmp_path: Path) -> None:
    named = make_home(tmp_path / "named", "21.0.1")
    on_path = make_home(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert find_java(environ).home == named


def test_java_home_without_a_java_says_so(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=f"JAVA_HOME is {tmp_path}, and there is no Java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_home(tmp_path / "old", "11.0.2")
    make_home(tmp_path / "jvm" / "new", "17.0.1")
    monkeypatch.setattr(module, "_LINUX_FOLDERS", (str(tmp_path / "jvm"),))
    assert find_java({"PATH": str(old / "bin")}).release == 17


def test_only_an_old_one_is_named_with_what_to_do(tmp_path: Path) -> None:
    old = make_home(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(old / "bin")})
    text = str(caught.value)
    assert f"needs 17 or newer: 11.0.2 ({old})" in text
    assert "apt-get install openjdk-17-jre-headless" in text
    assert 'pip install "moldau[java]"' in text


def test_none_at_all_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="JAVA_HOME is not set, no `java` is on the path"):
        find_java({"PATH": str(tmp_path)})


@pytest.mark.parametrize(("version", "kept"), [("17.0.1", True), ("25.0.2", False)])
def test_the_java_that_is_started_is_not_asked_for_what_it_may_lack(
    tmp_path: Path, version: str, kept: bool
) -> None:
    home = make_home(tmp_path / "a jdk", version)
    (home / "lib").mkdir()
    found = java_at(home)
    assert found is not None
    quiet = quiet_java(found, tmp_path / "cache")
    assert quiet == quiet_java(found, tmp_path / "cache")
    opened = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    arguments = ["--add-modules=jdk.incubator.vector", opened, "-cp", "a b", "Main"]
    said = subprocess.run(
        [quiet / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    expected = [*([opened] if kept else []), "-cp", "a b", "Main"]
    assert said.split("\n")[:-1] == [f"<{argument}>" for argument in expected]
    assert (quiet / "lib").is_dir()
    assert Java(quiet, found.release, found.version) == java_at(quiet)


def test_workers_import_the_installed_package_and_not_its_zip_file(tmp_path: Path) -> None:
    script = quick_python(tmp_path / "pyspark", tmp_path / "cache")
    zips = tmp_path / "pyspark" / "python" / "lib"
    path = f"{zips}/pyspark.zip:/one two:{zips}/py4j-src.zip:/other/python/lib/x.zip"
    said = subprocess.run(
        [script, "-c", "import os; print(os.environ['PYTHONPATH'])"],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.strip() == "/one two:/other/python/lib/x.zip"


def test_the_steps_of_an_operator_s_helper_are_not_told_but_its_errors_are(tmp_path: Path) -> None:
    script = quick_python(tmp_path / "pyspark", tmp_path / "cache")
    says = "import sys; print('a step'); print('an error', file=sys.stderr)"
    for argument, told in (
        ("pyspark.sql.streaming.transform_with_state_driver_worker", ""),
        ("pyspark.worker", "a step"),
    ):
        done = subprocess.run([script, "-c", says, argument], capture_output=True, text=True, check=True)
        assert (done.stdout.strip(), done.stderr.strip()) == (told, "an error")


def test_the_script_is_for_this_machine_alone() -> None:
    assert chosen_python({}, "/cache/python", "local[2]", local=True) == "/cache/python"
    assert chosen_python({}, "/cache/python", "spark://elsewhere:7077", local=False) == sys.executable
    assert chosen_python({}, "/cache/python", "yarn", local=False) is None


def test_the_python_that_the_user_wants_is_taken_everywhere() -> None:
    for master, local in (("local", True), ("spark://elsewhere:7077", False)):
        environ = {"PYSPARK_PYTHON": "/usr/bin/python3"}
        assert chosen_python(environ, "/cache/python", master, local=local) is None
