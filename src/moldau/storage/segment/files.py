"""The files of one segment: `<base offset, 20 digits>.<kind><suffix>` in the log's directory.

The suffix is normally empty. It is `.cleaned` and `.swap` while the cleaner replaces segments, and `.deleted`
until `file.delete.delay.ms` has passed.
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
#: The copy of a prefix, about to replace the longer file.
TRUNCATED = ".truncated"


def file_name(base_offset: int, kind: str, suffix: str = "") -> str:
    return f"{base_offset:020d}.{kind}{suffix}"


class SegmentFiles:
    """Names, opens and renames the files. `log_path` is kept ready for the write path."""

    __slots__ = ("base_offset", "directory", "log_path", "open_files", "suffix")

    def __init__(self, open_files: OpenFiles, directory: str, base_offset: int, suffix: str = "") -> None:
        self.open_files = open_files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.log_path = self.path(LOG)

    def path(self, kind: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}.{kind}{self.suffix}"

    def file(self, kind: str, *, create: bool = False) -> File:
        return self.open_files.get(self.path(kind), create=create)

    def existing(self) -> list[str]:
        """Paths of the files that exist."""
        paths = (self.path(kind) for kind in KINDS)
        return [path for path in paths if self.open_files.disk.exists(path)]

    def change_suffix(self, suffix: str) -> None:
        """Rename all files; a missing file (most segments have no `.txnindex`) is not an error.

        Open files are closed afterwards: a reader in a thread may open the old name until it is gone.
        """
        disk = self.open_files.disk
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
            self.open_files.forget(source)
            self.open_files.forget(target)
        self.suffix = suffix
        self.log_path = self.path(LOG)

    def _undo(self, renamed: list[tuple[str, str]]) -> None:
        for source, target in reversed(renamed):
            try:
                self.open_files.disk.rename(target, source)
            except OSError as error:
                logger.error("Cannot rename %s back to %s: %s", target, source, error)
            self.open_files.forget(target)

    def move(self, directory: str) -> None:
        """Follow the log's directory, which was renamed."""
        self.directory = directory
        self.log_path = self.path(LOG)

    def close(self) -> None:
        """Close the open files; the next access opens them again."""
        for kind in KINDS:
            self.open_files.forget(self.path(kind))

    def modified_ms(self) -> int:
        return self.open_files.disk.modified_ms(self.log_path)

    def set_modified(self, time_ms: int) -> None:
        for kind in (LOG, OFFSET_INDEX, TIME_INDEX):
            self.open_files.disk.set_modified(self.path(kind), time_ms)
