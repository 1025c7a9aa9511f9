"""The access of one process to a simulated drive: the simulated counterpart of `PosixDisk`.

Every call is one or more operations of the drive, each of which can fail or be the last before power loss.
After `detach`, all calls of the dead process raise `PowerLost`, and its locks are free.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Sequence
from zlib import crc32

from moldau.storage.disk.disk import Buffer, File, Lock
from moldau.testing.simulation.drive import Drive, Folder
from moldau.testing.simulation.faults import Operation, PowerLost, failure
from moldau.testing.simulation.inodes import Inode


class SimulatedDisk:
    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self._attached = True
        self._locks: list[_SimulatedLock] = []

    @property
    def drive(self) -> Drive:
        """Return the drive; `PowerLost` if the process is dead."""
        if not self._attached:
            raise PowerLost("the process is dead")
        return self._drive

    def detach(self) -> None:
        """Revoke the access of a dead process."""
        for lock in self._locks:
            lock.release()
        self._attached = False

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        drive = self.drive
        drive.begin(Operation.OPEN, path)
        found = drive.find(path)
        if isinstance(found, Folder):
            raise failure(errno.EISDIR, path)
        if found is None:
            found = self._create(path) if create else None
        if found is None:
            raise failure(errno.ENOENT, path)
        return SimulatedFile(self, found, path)

    def _create(self, path: str) -> Inode:
        drive = self.drive
        parent = drive.folder(posixpath.dirname(path))
        drive.begin(Operation.CREATE, path)
        drive.need_room(path)
        inode = Inode(modified_ms=drive.time_ms())
        drive.change((parent, posixpath.basename(path), inode))
        drive.done(path)
        return inode

    def exists(self, path: str) -> bool:
        self._look(path)
        return self.drive.find(path) is not None

    def is_dir(self, path: str) -> bool:
        self._look(path)
        return isinstance(self.drive.find(path), Folder)

    def realpath(self, path: str) -> str:
        return posixpath.normpath(path)

    def listdir(self, path: str) -> list[str]:
        self.drive.begin(Operation.READ, path)
        return sorted(self.drive.folder(path).entries)

    def makedirs(self, path: str) -> None:
        drive, built = self.drive, ""
        for name in posixpath.normpath(path).split("/")[1:]:
            parent, built = drive.folder(built or "/"), f"{built}/{name}"
            if isinstance(drive.find(built), Inode):
                raise failure(errno.EEXIST, built)
            if drive.find(built) is None:
                drive.begin(Operation.MAKE_DIR, built)
                drive.need_room(built)
                drive.change((parent, name, Folder()))
                drive.done(built)

    def rename(self, source: str, target: str) -> None:
        drive = self.drive
        drive.begin(Operation.RENAME, source, target)
        entry, replaced = drive.find(source), drive.find(target)
        if entry is None:
            raise failure(errno.ENOENT, source)
        if isinstance(replaced, Folder) and (isinstance(entry, Inode) or replaced.entries):
            raise failure(errno.EISDIR if isinstance(entry, Inode) else errno.ENOTEMPTY, target)
        old, new = drive.folder(posixpath.dirname(source)), drive.folder(posixpath.dirname(target))
        drive.need_room(source)
        drive.change((old, posixpath.basename(source), None), (new, posixpath.basename(target), entry))
        if isinstance(replaced, Inode) and replaced is not entry:
            self._forget(replaced)
        drive.done(source)

    def remove(self, path: str) -> None:
        drive = self.drive
        entry = drive.find(path)
        drive.begin(Operation.REMOVE, path)
        if entry is None:
            return
        if isinstance(entry, Folder):
            raise failure(errno.EISDIR, path)
        drive.change((drive.folder(posixpath.dirname(path)), posixpath.basename(path), None))
        self._forget(entry)
        drive.done(path)

    def _forget(self, inode: Inode) -> None:
        if inode.linked:
            inode.linked = False
            self.drive.grow(-len(inode.data))

    def remove_tree(self, path: str) -> None:
        folder = self.drive.find(path)
        if not isinstance(folder, Folder):
            return
        for name, entry in sorted(folder.entries.items()):
            if isinstance(entry, Folder):
                self.remove_tree(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")
        drive = self.drive
        drive.begin(Operation.REMOVE, path)
        drive.change((drive.folder(posixpath.dirname(path)), posixpath.basename(path), None))
        drive.done(path)

    def size(self, path: str) -> int:
        self._look(path)
        return len(self.drive.file(path).data)

    def modified_ms(self, path: str) -> int:
        self._look(path)
        return self.drive.file(path).modified_ms

    def set_modified(self, path: str, time_ms: int) -> None:
        drive = self.drive
        drive.begin(Operation.SET_MODIFIED, path, time_ms)
        drive.file(path).modified_ms = time_ms
        drive.done(path)

    def sync_dir(self, path: str) -> None:
        drive = self.drive
        folder = drive.folder(path)
        drive.begin(Operation.SYNC_DIR, path)
        # An interrupted sync has written an arbitrary part, which is as good as none.
        drive.lose_power_if_due(path, ahead=1)
        drive.sync_folder(folder)
        drive.done(path)

    def free_bytes(self, path: str) -> int:
        free = self.drive.free
        return 1 << 40 if free is None else max(0, free)

    def total_bytes(self, path: str) -> int:
        return 1 << 41

    def read_bytes(self, path: str) -> bytes:
        self._look(path)
        return bytes(self.drive.file(path).data)

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        """Replace a file atomically, in the steps of `PosixDisk`: write, sync, rename, sync the folder."""
        temporary = path + ".tmp"
        try:
            file = self.open(temporary, create=True)
            file.truncate(0)
            file.pwrite((data,), 0)
            file.sync()
            self.rename(temporary, path)
        except OSError:
            self.remove(temporary)
            raise
        self.sync_dir(posixpath.dirname(path))

    def make_private(self, folder: str) -> None:
        """Nothing: the simulated drive has one user."""

    def lock(self, path: str) -> Lock:
        self.open(path, create=True)
        if path in self.drive.locks:
            raise BlockingIOError(errno.EAGAIN, "locked by another process", path)
        lock = _SimulatedLock(self.drive, path)
        self._locks.append(lock)
        return lock

    def _look(self, path: str) -> None:
        self.drive.begin(Operation.READ, path)


class _SimulatedLock:
    def __init__(self, drive: Drive, path: str) -> None:
        self._drive = drive
        self._path = path
        drive.locks[path] = self

    def release(self) -> None:
        if self._drive.locks.get(self._path) is self:
            del self._drive.locks[self._path]


class SimulatedFile:
    """An open file; like a descriptor, it stays valid when the file is renamed or removed."""

    __slots__ = ("_disk", "_inode", "path")

    def __init__(self, disk: SimulatedDisk, inode: Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path

    def size(self) -> int:
        self._look()
        return len(self._inode.data)

    def pread(self, size: int, offset: int) -> bytes | memoryview:
        self._look()
        return bytes(self._inode.data[offset : offset + size])

    def pread_nowait(self, size: int, offset: int) -> bytes | memoryview | None:
        cold = self._disk.drive.cold
        if cold is not None and cold.random() < 0.2:
            return None
        data = self.pread(size, offset)
        return data if len(data) == size else None

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> None:
        drive, inode = self._disk.drive, self._inode
        data = b"".join(buffers)
        drive.begin(Operation.WRITE, self.path, f"{offset} {len(data)} {crc32(data):08x}")
        growth = max(0, offset + len(data) - len(inode.data))
        room = drive.grow(growth)
        fits = len(data) - (growth - room)
        if fits > 0:
            inode.write(data[:fits], offset)
            inode.modified_ms = drive.time_ms()
        drive.done(self.path)
        if fits < len(data):
            raise failure(errno.ENOSPC, self.path)

    def truncate(self, size: int) -> None:
        drive, inode = self._disk.drive, self._inode
        drive.begin(Operation.TRUNCATE, self.path, size)
        if size != len(inode.data):
            if drive.grow(size - len(inode.data)) < size - len(inode.data):
                raise failure(errno.ENOSPC, self.path)
            inode.truncate(size)
        drive.done(self.path)

    def allocate(self, offset: int, size: int) -> None:
        return None

    def sync(self) -> None:
        drive = self._disk.drive
        try:
            drive.begin(Operation.SYNC, self.path)
        except OSError:
            self._inode.drop_changes()
            raise
        drive.lose_power_if_due(self.path, ahead=1)
        self._inode.sync()
        drive.done(self.path)

    def close(self) -> None:
        return None

    def map(self, offset: int, length: int, *, resident_only: bool = False) -> memoryview | None:
        self._look()
        data = bytes(self._inode.data[offset : offset + length])
        return memoryview(data) if len(data) == length and length else None

    def _look(self) -> None:
        self._disk.drive.begin(Operation.READ, self.path)
