"""Folders of the user's own, for what is made once and used by later processes.

Some users have no home, or one that cannot be written: service accounts, containers with any user number.
Then a folder among the temporary ones takes its place. Code lies in these folders, so one that others may
write to is not trusted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where scripts, notes and archives are kept; the variable is obeyed and never passed over."""
    if "MOLDAU_CACHE" in environ:
        return Path(environ["MOLDAU_CACHE"]).absolute()
    usual = usual_folder(environ)
    if usual is not None and _can_be_written(usual):
        return usual
    temporary = temporary_folder()
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    return temporary if is_ours(temporary) else Path(tempfile.mkdtemp(prefix="moldau-"))


def usual_folder(environ: Mapping[str, str]) -> Path | None:
    """Where the system keeps such things; None for a user without a home."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    if sys.platform == "darwin":
        folder = home / "Library" / "Caches" / "moldau"
    else:
        folder = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "moldau"
    return folder if folder.is_absolute() else None


def temporary_folder() -> Path:
    """The user's among the temporary ones, which somebody else may have made."""
    return Path(tempfile.gettempdir()) / f"moldau-{os.getuid()}"


def is_ours(folder: Path) -> bool:
    """Not there yet, or nobody else can write there."""
    try:
        state = folder.stat(follow_symlinks=False)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return state.st_uid == os.getuid() and not state.st_mode & 0o022


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
