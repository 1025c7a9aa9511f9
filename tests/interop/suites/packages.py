"""Download packages with the client of their registry: pip, apt, Go and Cargo. Downloads are kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.interop.jars import Missing
from tests.interop.suites.suite import CACHE

_BRING_SECONDS = 300.0
_BUILD_SECONDS = 900.0


def need(program: str, hint: str) -> None:
    if shutil.which(program) is None:
        raise Missing(f"{program} is not installed ({hint})")


def call(argv: Sequence[str], cwd: Path, *, timeout: float, what: str) -> str:
    """Run a command that must succeed and return its standard output."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise Missing(f"{what}: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def build(argv: Sequence[str], cwd: Path, what: str) -> str:
    return call(["nice", *argv], cwd, timeout=_BUILD_SECONDS, what=f"{what} could not be built")


def sdist(project: str, version: str) -> Path:
    """Return the unpacked source distribution of a Python project."""
    folder = CACHE / f"{project}-{version}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        pinned = f"{project}=={version}"
        argv = [*_pip(), "download", "--no-deps", "--no-binary", project, "-d", str(CACHE), pinned]
        call(argv, CACHE, timeout=_BRING_SECONDS, what=f"pip could not download {pinned}")
        archive = CACHE / f"{project.replace('-', '_')}-{version}.tar.gz"
        _unpack(archive, folder)
    return folder


def wheels(target: Path, *requirements: str) -> None:
    """Install packages for one suite into a folder for its `PYTHONPATH`."""
    if not target.exists():
        argv = [*_pip(), "install", "--target", f"{target}.new", *requirements]
        call(argv, CACHE, timeout=_BRING_SECONDS, what=f"pip could not download {' '.join(requirements)}")
        os.rename(f"{target}.new", target)


def debian_source(package: str, version: str) -> Path:
    """Return the unpacked upstream source of a Debian package, from the configured mirrors."""
    folder = CACHE / f"{package}-{version}"
    if not folder.exists():
        need("apt-get", f"{package}'s tests come with Debian's source package")
        apt = CACHE / "apt"
        (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        query = ["apt-get", "indextargets", "--format", "deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)"]
        sources = call([*query, "Created-By: Packages"], apt, timeout=60, what="apt has no mirrors")
        debian = [line for line in sources.splitlines() if "/debian/ " in line]
        (apt / "sources.list").write_text("\n".join(debian) + "\n")
        options = ["-o", f"Dir::Etc::SourceList={apt}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null"]
        options += ["-o", f"Dir::State::Lists={apt}/lists"]
        call(
            ["apt-get", *options, "update"],
            apt,
            timeout=_BRING_SECONDS,
            what="apt could not reach its mirrors",
        )
        argv = ["apt-get", *options, "source", "--download-only", package]
        call(argv, apt, timeout=_BRING_SECONDS, what=f"apt could not download the source of {package}")
        archive = apt / f"{package}_{version}.orig.tar.gz"
        if not archive.exists():
            raise Missing(f"the list is for {package} {version} (Debian 12), and the mirrors have another")
        _unpack(archive, folder)
    return folder


def debian_headers(package: str) -> Path:
    """Return the include folder of a Debian package without installing it."""
    folder = CACHE / package
    if not folder.exists():
        apt = CACHE / "apt"
        call(
            ["apt-get", "download", package],
            apt,
            timeout=_BRING_SECONDS,
            what=f"apt could not download {package}",
        )
        (archive,) = apt.glob(f"{package}_*.deb")
        call(["dpkg-deb", "-x", str(archive), str(folder)], apt, timeout=60, what=f"{package} is damaged")
    return folder / "usr" / "include"


def go_module(path: str, version: str) -> Path:
    """Return the folder of a Go module in Go's cache."""
    need("go", "https://go.dev/dl")
    CACHE.mkdir(parents=True, exist_ok=True)
    argv = ["go", "mod", "download", "-json", f"{path}@{version}"]
    answer = call(argv, CACHE, timeout=_BRING_SECONDS, what=f"Go could not download {path}")
    return Path(json.loads(answer)["Dir"])


def crate(name: str, version: str) -> Path:
    """Return the unpacked source of a crate, including tests."""
    folder = CACHE / f"{name}-crate-{version}"
    if not folder.exists():
        need("cargo", "https://rustup.rs")
        stub = CACHE / f"{name}-stub"
        (stub / "src").mkdir(parents=True, exist_ok=True)
        (stub / "src" / "lib.rs").touch()
        manifest = f'[package]\nname = "stub"\nversion = "0.0.0"\n[dependencies]\n{name} = "={version}"\n'
        (stub / "Cargo.toml").write_text(manifest)
        argv = ["cargo", "metadata", "--format-version", "1"]
        answer = call(argv, stub, timeout=_BRING_SECONDS, what=f"Cargo could not download {name}")
        found = [each for each in json.loads(answer)["packages"] if each["name"] == name]
        shutil.copytree(Path(found[0]["manifest_path"]).parent, folder)
    return folder


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack the archive's single top-level folder under another name, atomically."""
    unpacking = folder.with_suffix(".unpacking")
    shutil.rmtree(unpacking, ignore_errors=True)
    shutil.unpack_archive(archive, unpacking, filter="data")
    (top,) = unpacking.iterdir()
    top.rename(folder)
    unpacking.rmdir()
