"""The user's cache folder, for files that one process creates and later processes reuse.

The folder is that of the operating system (`platformdirs`). Some users have no home, or one that is
read-only: service accounts, containers with an arbitrary user id. For them a folder below the system's
temporary folder is used. The files include code, so a folder that other users can write to is not trusted.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the folder of scripts, archives and compiled code; `MOLDAU_CACHE` overrides every default."""
    if "MOLDAU_CACHE" in os.environ:
        return Path(os.environ["MOLDAU_CACHE"]).absolute()
    usual = platformdirs.user_cache_path("moldau", appauthor=False)
    if usual.is_absolute() and _is_writable(usual):
        return usual
    temporary = Path(tempfile.gettempdir()) / f"moldau-{os.getuid()}"
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    return temporary if is_private(temporary) else Path(tempfile.mkdtemp(prefix="moldau-"))


def is_private(folder: Path) -> bool:
    """Return whether this user owns the folder and no other user can write to it."""
    state = folder.stat(follow_symlinks=False)
    return state.st_uid == os.getuid() and not state.st_mode & 0o022


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
