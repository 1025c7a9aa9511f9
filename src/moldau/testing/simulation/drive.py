"""A simulated drive: a tree of files and folders that distinguishes written from durable data.

File contents become durable by `sync` (see `inodes`). Changes of folder entries (create, rename, remove)
are in a journal until `sync_dir` of their folder. After power loss, a prefix of the journal is durable, as
in journaling file systems, or a separate prefix for every folder, as if each were on another disk. A rename
is atomic.

Each process uses the drive through its own `SimulatedDisk` (`disk`). `image()` is a snapshot of durable and
cached data; `after_power_loss` creates new drives from it, so that every operation of a run can be tested
as the last one.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias
from zlib import crc32

from moldau.testing.simulation.faults import CHANGING, Fault, Operation, PowerLost, failure
from moldau.testing.simulation.inodes import Change, Fate, Inode, survivors
from moldau.testing.simulation.trace import Trace


class Folder:
    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.durable: dict[str, Entry] = {}


Entry: TypeAlias = Inode | Folder
#: One change of a folder: the new entry of a name, or None.
Link: TypeAlias = tuple[Folder, str, Entry | None]
#: The changes of folders in one step.
Step: TypeAlias = tuple[Link, ...]


class Drive:
    """`free` is the number of free bytes; None for unlimited space."""

    def __init__(self, trace: Trace | None = None, time_ms: Callable[[], int] = lambda: 0) -> None:
        self.root = Folder()
        self.faults: list[Fault] = []
        self.free: int | None = None
        #: If set, non-blocking reads fail at random, as for data outside the page cache.
        self.cold: Random | None = None
        self.operations = 0
        self.on: bool = True
        self.locks: dict[str, object] = {}
        #: Called after every operation that changes the drive.
        self.on_operation: Callable[[], None] | None = None
        self.on_power_loss: Callable[[], None] | None = None
        self.time_ms = time_ms
        self.journal: list[Step] = []
        self._trace = trace or Trace()
        self._power_until: int | None = None

    # Power.

    def crash_after(self, operations: int) -> None:
        """Lose power after, or in the middle of, the operation with this number, counted from the next."""
        self._power_until = self.operations + operations

    def power_off(self) -> None:
        """Switch off: all operations fail until `power_loss` has decided which data is durable."""
        self.on = False
        self.locks.clear()
        if self.on_power_loss is not None:
            self.on_power_loss()

    def power_loss(self, random: Random) -> None:
        """Drop data that is not durable, by random choice, and switch on again."""
        left = self.image().after_power_loss(random)
        self.root, self.journal = left.root, []
        self.locks.clear()
        self.on, self._power_until = True, None
        self._trace.note("power", self.content_hash())

    def image(self) -> DriveImage:
        copies: _Copies = {}
        return DriveImage(_copy_folder(self.root, copies), _copy_journal(self.journal, copies))

    def content_hash(self) -> int:
        """Return a digest of all data that programs see."""
        return crc32(repr(list(walk(self.root))).encode())

    # For `SimulatedDisk`.

    def begin(self, operation: Operation, path: str, detail: object = "") -> None:
        """Begin an operation; raise its error if it fails."""
        if not self.on:
            raise PowerLost(path)
        if operation in CHANGING:
            self._trace.note(operation.value, path, detail)
        for fault in self.faults:
            if fault.hits(operation, path):
                self._trace.note("fails", fault.error)
                raise failure(fault.error, path)

    def done(self, path: str) -> None:
        """Complete an operation that changes the drive, or lose power before it returns."""
        self.operations += 1
        if self.on_operation is not None:
            self.on_operation()
        self.lose_power_if_due(path)

    def lose_power_if_due(self, path: str, ahead: int = 0) -> None:
        if self._power_until is not None and self.operations + ahead >= self._power_until:
            self.power_off()
            raise PowerLost(path)

    def find(self, path: str) -> Entry | None:
        entry: Entry | None = self.root
        for name in _names(path):
            entry = entry.entries.get(name) if isinstance(entry, Folder) else None
        return entry

    def folder(self, path: str) -> Folder:
        entry = self.find(path)
        if entry is None:
            raise failure(errno.ENOENT, path)
        if not isinstance(entry, Folder):
            raise failure(errno.ENOTDIR, path)
        return entry

    def file(self, path: str) -> Inode:
        entry = self.find(path)
        if entry is None:
            raise failure(errno.ENOENT, path)
        if not isinstance(entry, Inode):
            raise failure(errno.EISDIR, path)
        return entry

    def change(self, *links: Link) -> None:
        """Record one step of folder changes in the journal."""
        for folder, name, entry in links:
            if entry is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = entry
        self.journal.append(links)

    def sync_folder(self, folder: Folder) -> None:
        """Make all changes of the folder durable, with those they depend on."""
        wanted = [any(link[0] is folder for link in step) for step in self.journal]
        kept = _closed(self.journal, wanted)
        for step, keep in zip(self.journal, kept, strict=True):
            if keep:
                _apply(step)
        self.journal = [step for step, keep in zip(self.journal, kept, strict=True) if not keep]

    def grow(self, size: int) -> int:
        """Reserve this many bytes (release, if negative); return how many were available."""
        if self.free is None:
            return size
        granted = min(size, max(0, self.free))
        self.free -= granted
        return granted

    def need_room(self, path: str) -> None:
        """Fail on a full drive, because new entries also need space."""
        if self.free is not None and self.free <= 0:
            raise failure(errno.ENOSPC, path)


@dataclass(slots=True)
class _FileImage:
    durable: bytes
    changes: tuple[Change, ...]
    modified_ms: int


@dataclass(slots=True)
class _FolderImage:
    durable: dict[str, _Image] = field(default_factory=dict)


_Image: TypeAlias = _FileImage | _FolderImage
_Copies: TypeAlias = dict[int, _Image]
_StepImage: TypeAlias = tuple[tuple[_FolderImage, str, _Image | None], ...]


class DriveImage:
    """An immutable snapshot of the durable and cached data of a drive."""

    def __init__(self, root: _FolderImage, journal: list[_StepImage]) -> None:
        self._root = root
        self._journal = journal

    def after_power_loss(self, random: Random, trace: Trace | None = None) -> Drive:
        """Return a drive with the data that remains; it depends on the random numbers."""
        entries: dict[int, dict[str, _Image]] = {}
        for step, keep in zip(self._journal, self._kept(random), strict=True):
            for folder, name, entry in step if keep else ():
                durable = entries.setdefault(id(folder), dict(folder.durable))
                if entry is None:
                    durable.pop(name, None)
                else:
                    durable[name] = entry
        drive = Drive(trace)
        drive.root = self._folder(self._root, entries, random, _favourite(random))
        return drive

    def _kept(self, random: Random) -> list[bool]:
        """Choose the durable steps of the journal."""
        count = len(self._journal)
        manner = random.randrange(4)
        if manner < 2:
            kept = random.choice((0, count, random.randint(0, count))) if manner else 0
            return [place < kept for place in range(count)]
        return _closed(self._journal, self._prefixes(random))

    def _prefixes(self, random: Random) -> list[bool]:
        """Choose a prefix of the steps of every folder."""
        lengths: dict[int, int] = {}
        for step in self._journal:
            for folder, _, _ in step:
                lengths[id(folder)] = lengths.get(id(folder), 0) + 1
        left = {folder: random.randint(0, length) for folder, length in lengths.items()}
        wanted: list[bool] = []
        for step in self._journal:
            touched = [id(folder) for folder, _, _ in step]
            wanted.append(any(left[each] > 0 for each in touched))
            for each in touched:
                left[each] -= 1
        return wanted

    def _folder(
        self, image: _FolderImage, entries: dict[int, dict[str, _Image]], random: Random, fate: Fate | None
    ) -> Folder:
        folder = Folder()
        for name, entry in sorted(entries.get(id(image), image.durable).items()):
            if isinstance(entry, _FolderImage):
                folder.entries[name] = self._folder(entry, entries, random, fate)
            else:
                own = fate or random.choice(tuple(Fate))
                content = survivors(entry.durable, entry.changes, own, random)
                folder.entries[name] = Inode(content, entry.modified_ms)
        folder.durable = dict(folder.entries)
        return folder


def _favourite(random: Random) -> Fate | None:
    """Choose the effect for each file; in half of the cases the same for all files."""
    return random.choice(tuple(Fate)) if random.random() < 0.5 else None


def walk(folder: Folder, path: str = "") -> Sequence[tuple[str, bytes | None]]:
    """Yield all paths in order, with the content of files and None for folders."""
    found: list[tuple[str, bytes | None]] = []
    for name, entry in sorted(folder.entries.items()):
        where = f"{path}/{name}"
        if isinstance(entry, Folder):
            found.append((where, None))
            found += walk(entry, where)
        else:
            found.append((where, bytes(entry.data)))
    return found


def _names(path: str) -> list[str]:
    return [name for name in posixpath.normpath(path).split("/") if name]


def _apply(step: Step) -> None:
    for folder, name, entry in step:
        if entry is None:
            folder.durable.pop(name, None)
        else:
            folder.durable[name] = entry


def _closed(journal: Sequence[Step] | Sequence[_StepImage], wanted: list[bool]) -> list[bool]:
    """Return the wanted steps and all earlier steps of the same folders."""
    kept = list(wanted)
    needed: set[int] = set()
    for place in range(len(journal) - 1, -1, -1):
        folders = {id(folder) for folder, _, _ in journal[place]}
        kept[place] = kept[place] or not folders.isdisjoint(needed)
        if kept[place]:
            needed |= folders
    return kept


def _copy_folder(folder: Folder, copies: _Copies) -> _FolderImage:
    known = copies.get(id(folder))
    if isinstance(known, _FolderImage):
        return known
    image = copies[id(folder)] = _FolderImage()
    image.durable = {name: _copy(entry, copies) for name, entry in folder.durable.items()}
    return image


def _copy(entry: Entry, copies: _Copies) -> _Image:
    if isinstance(entry, Folder):
        return _copy_folder(entry, copies)
    known = copies.get(id(entry))
    if known is None:
        known = copies[id(entry)] = _FileImage(entry.durable, tuple(entry.changes), entry.modified_ms)
    return known


def _copy_journal(journal: Sequence[Step], copies: _Copies) -> list[_StepImage]:
    return [
        tuple(
            (_copy_folder(folder, copies), name, None if entry is None else _copy(entry, copies))
            for folder, name, entry in step
        )
        for step in journal
    ]
