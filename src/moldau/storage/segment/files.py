"""The files of one segment, by kind: `<base offset, 20 digits>.<kind><suffix>` in the log's folder.

The suffix is empty in normal life, `.cleaned` and `.swap` while the cleaner replaces segments, `.deleted`
until the delay before deletion is over.
"""

from __future__ import annotations

import logging

from moldau.storage.disk.disk import File
from moldau.storage.disk.open_files import OpenFiles

logger = logging.getLogger(__name__)

LOG = "log"
OFFSET_INDEX = "index"
TIME_INDEX = "timeindex"
TXN_INDEX = "txnindex"
KINDS = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"
#: A copy that is about to take the place of a longer file.
TRUNCATED = ".truncated"


def file_name(base_offset: int, kind: str, suffix: str = "") -> str:
    return f"{base_offset:020d}.{kind}{suffix}"


class SegmentFiles:
    __slots__ = ("base_offset", "directory", "files", "suffix")

    def __init__(self, files: OpenFiles, directory: str, base_offset: int, suffix: str = "") -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix

    def path(self, kind: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}.{kind}{self.suffix}"

    def file(self, kind: str, *, create: bool = False) -> File:
        return self.files.get(self.path(kind), create=create)

    def existing(self) -> list[str]:
        paths = (self.path(kind) for kind in KINDS)
        return [path for path in paths if self.files.disk.exists(path)]

    def rename(self, suffix: str) -> None:
        """Give all files another suffix; one that is not there (most have no `.txnindex`) is fine.

        Open files are forgotten afterwards: a reader in a thread may open the old name until it is gone.
        """
        disk = self.files.disk
        renamed: list[tuple[str, str]] = []
        for kind in KINDS:
            source = self.path(kind)
            target = f"{self.directory}/{file_name(self.base_offset, kind, suffix)}"
            if disk.exists(source):
                try:
                    disk.rename(source, target)
                except OSError:
                    self._undo(renamed)
                    raise
                renamed.append((source, target))
            self.files.forget(source)
            self.files.forget(target)
        self.suffix = suffix

    def _undo(self, renamed: list[tuple[str, str]]) -> None:
        for source, target in reversed(renamed):
            try:
                self.files.disk.rename(target, source)
            except OSError as error:
                logger.error("%s cannot get its name %s back: %s", target, source, error)
            self.files.forget(target)

    def forget(self) -> None:
        """Let go of the open files."""
        for kind in KINDS:
            self.files.forget(self.path(kind))
