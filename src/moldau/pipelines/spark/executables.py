"""Wrapper scripts around Java and Python for the processes of a session, stored in the cache folder.

**Java.** Spark always requests the module `jdk.incubator.vector`, which only parts of its linear algebra
use. Small runtimes lack the module and do not start; full ones print a warning at every start. The script
drops the request. Spark runs `$JAVA_HOME/bin/java`, so the script is in a folder with links to the rest of
the Java home.

**Python.** Spark puts a zip file of PySpark on the path of its workers, and every Python process compiles it
again: half a second of CPU each. The script removes the zip file from `PYTHONPATH`, so that workers import
the installed PySpark. In a quick-start session it also runs the client of the fork server (`fork_server`).
The process that queries the state of a stateful operator, once per query, prints every step; the script
discards that output (its errors are reported in another way).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from moldau.pipelines.spark.fork_server.start import SOCKET, client_path
from moldau.pipelines.spark.java import Java

_JAVA = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
#: Java 24 removed this package and prints a warning if it is opened.
_REMOVED_PACKAGE = "--add-opens=java.base/sun.security.action=*"

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
  *{verbose}*) exec >/dev/null ;;
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
#: The environment variable that names Spark's Python.
PYTHON = "PYSPARK_PYTHON"
_VERBOSE = "pyspark.sql.streaming.transform_with_state_driver_worker"


def spark_home() -> Path:
    """Return the folder of the installed PySpark, which contains all of Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


def java_home(java: Java, cache: Path) -> Path:
    """Return a Java home like the given one whose `java` drops the options that Spark does not need."""
    dropped = f"{_VECTOR_MODULE}|{_REMOVED_PACKAGE}" if java.release >= 24 else _VECTOR_MODULE
    text = _JAVA.format(java=shlex.quote(str(java.home / "bin" / "java")), dropped=dropped)
    home = cache / f"java-{java.version}-{_digest(text)}"
    if not (home / "bin" / "java").exists():
        (home / "bin").mkdir(parents=True, exist_ok=True)
        _link_all(java.home, home, without="bin")
        _link_all(java.home / "bin", home / "bin", without="java")
        _write_script(home / "bin" / "java", text)
    return home


def python_script(pyspark: Path, cache: Path) -> Path:
    """Return a script that runs this Python with the installed PySpark instead of its zip file."""
    text = _PYTHON.format(
        spark=shlex.quote(str(pyspark)),
        python=shlex.quote(sys.executable),
        verbose=_VERBOSE,
        socket=SOCKET,
        client=shlex.quote(str(client_path())),
    )
    script = cache / f"python-{_digest(text)}" / "python"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        _write_script(script, text)
    return script


def worker_python(environ: Mapping[str, str], script: str, master: str, *, local: bool) -> str | None:
    """Return the value for `PYSPARK_PYTHON`: the script on this machine, the path of this Python on a
    standalone cluster, None if the user has set it or for other cluster managers, which have their own."""
    if PYTHON in environ:
        return None
    if local:
        return script
    return sys.executable if master.startswith("spark://") else None


@contextmanager
def changed_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes started in the block; restore them afterwards."""
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
                # Another process creates the same folder.
                continue


def _write_script(script: Path, text: str) -> None:
    written = script.with_name(f"{script.name}.{os.getpid()}")
    written.write_text(text)
    written.chmod(0o755)
    written.replace(script)
