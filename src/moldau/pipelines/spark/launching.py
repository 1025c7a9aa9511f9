"""What the processes of a local session are started with: scripts in the cache folder around Java and Python.

**Java.** Spark's launcher always asks for the module `jdk.incubator.vector`, which small runtimes lack
(they do not start then) and full ones report on the terminal at every start. Only parts of Spark's linear
algebra use it. The script leaves the request out.

**Python.** Spark lets its workers import PySpark from a zip file, which Python compiles again in every
process: half a second of CPU for each. The script takes what belongs to this installation from the path, so
that workers import the installed PySpark, compiled once; and it has them forked from a process that has
imported it already, where there is one (`forks`). The process that asks a stateful operator for its
state, once per query, tells of every step on the terminal; its errors come another way, and its steps do not.

Spark finds Java as `$JAVA_HOME/bin/java`, so its script lies in a folder with links to the rest of the home.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from moldau.pipelines.spark.forks import SOCKET, client_path
from moldau.pipelines.spark.java import Java

_JAVA = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in
    {left_out}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""

_VECTORS = "--add-modules=jdk.incubator.vector"
#: A package that Java 24 removed, and whose absence it reports.
_REMOVED = "--add-opens=java.base/sun.security.action=*"

_PYTHON = """\
#!/bin/sh
path=
IFS=:
for entry in $PYTHONPATH; do
  case "$entry" in
    {spark}/*) ;;
    *) path="$path${{path:+:}}$entry" ;;
  esac
done
unset IFS
case "$*" in
  *{talkative}*) exec >/dev/null ;;
esac
export PYTHONPATH=$path
case "$1 $2" in
  "-m pyspark."* | "-m moldau."*)
    if [ -S "${socket}" ]; then
      exec {python} -I -S {client} "${socket}" {python} "$@"
    fi ;;
esac
exec {python} "$@"
"""
#: Where Spark looks which Python to use.
PYTHON = "PYSPARK_PYTHON"
_TALKATIVE = "pyspark.sql.streaming.transform_with_state_driver_worker"


def spark_home() -> Path:
    """The installed PySpark, which has all of Spark in it."""
    import pyspark

    return Path(pyspark.__file__).parent


def quiet_java(java: Java, cache: Path) -> Path:
    """A Java home like the given one, whose `java` starts Spark without the module it does not need."""
    left_out = f"{_VECTORS}|{_REMOVED}" if java.release >= 24 else _VECTORS
    text = _JAVA.format(java=shlex.quote(str(java.home / "bin" / "java")), left_out=left_out)
    home = cache / f"java-{java.version}-{_digest(text)}"
    if not (home / "bin" / "java").exists():
        (home / "bin").mkdir(parents=True, exist_ok=True)
        _link_all(java.home, home, without="bin")
        _link_all(java.home / "bin", home / "bin", without="java")
        _write_script(home / "bin" / "java", text)
    return home


def quick_python(pyspark: Path, cache: Path) -> Path:
    """This Python, importing the PySpark that is installed rather than its zip file."""
    text = _PYTHON.format(
        spark=shlex.quote(str(pyspark)),
        python=shlex.quote(sys.executable),
        talkative=_TALKATIVE,
        socket=SOCKET,
        client=shlex.quote(str(client_path())),
    )
    script = cache / f"python-{_digest(text)}" / "python"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        _write_script(script, text)
    return script


def chosen_python(environ: Mapping[str, str], script: str, master: str, *, local: bool) -> str | None:
    """The Python to name to Spark: our script here, which no other machine has, and this Python's path on a
    standalone cluster. None where the user has said which, or where Spark knows better."""
    if PYTHON in environ:
        return None
    if local:
        return script
    return sys.executable if master.startswith("spark://") else None


@contextmanager
def changed_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes started meanwhile; afterwards as before."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _link_all(source: Path, target: Path, *, without: str) -> None:
    for entry in source.iterdir():
        if entry.name != without:
            try:
                (target / entry.name).symlink_to(entry)
            except FileExistsError:
                # Another process makes the same folder.
                continue


def _write_script(script: Path, text: str) -> None:
    written = script.with_name(f"{script.name}.{os.getpid()}")
    written.write_text(text)
    written.chmod(0o755)
    written.replace(script)
