"""The simulated disk: synced data survives, unsynced data may be lost, and no other data appears."""

from __future__ import annotations

import errno
from random import Random

import pytest

from moldau.testing.simulation.disk import SimulatedDisk
from moldau.testing.simulation.drive import Drive, walk
from moldau.testing.simulation.faults import Fault, Operation, PowerLost
from moldau.testing.simulation.inodes import SECTOR


def files_after(drive: Drive, seed: int) -> dict[str, bytes | None]:
    return dict(walk(drive.image().after_power_loss(Random(seed)).root))


def disk_with_folder() -> tuple[Drive, SimulatedDisk]:
    drive = Drive()
    disk = SimulatedDisk(drive)
    disk.makedirs("/d")
    disk.sync_dir("/")
    return drive, disk


def test_synced_bytes_survive_and_the_rest_is_torn_by_sectors() -> None:
    drive, disk = disk_with_folder()
    file = disk.open("/d/f", create=True)
    file.pwrite((b"a" * 1000,), 0)
    file.sync()
    disk.sync_dir("/d")
    file.pwrite((b"b" * 3000,), 1000)
    seen = {files_after(drive, seed)["/d/f"] for seed in range(200)}
    assert len(seen) > 8
    for content in seen:
        assert content is not None
        assert content[:1000] == b"a" * 1000
        assert content[1000:].strip(b"b\0") == b""
        rest = content[2 * SECTOR :]
        for start in range(0, len(rest), SECTOR):
            assert len(set(rest[start : start + SECTOR])) == 1, "a sector is written atomically"
    assert any(content and b"\0" in content and b"b" in content for content in seen)


def test_file_names_are_durable_only_after_a_directory_sync() -> None:
    drive, disk = disk_with_folder()
    disk.open("/d/new", create=True).sync()
    assert {"/d/new" in files_after(drive, seed) for seed in range(40)} == {True, False}
    disk.sync_dir("/d")
    disk.rename("/d/new", "/d/renamed")
    for seed in range(40):
        found = files_after(drive, seed)
        assert ("/d/new" in found) != ("/d/renamed" in found), "a rename is atomic"
    disk.sync_dir("/d")
    assert all("/d/renamed" in files_after(drive, seed) for seed in range(40))


def test_atomically_replaced_file_is_old_or_new_at_every_operation() -> None:
    drive, disk = disk_with_folder()
    disk.write_atomic("/d/c", b"old" * 400)
    images = []
    drive.on_operation = lambda: images.append(drive.image())
    disk.write_atomic("/d/c", b"new" * 500)
    contents = {
        dict(walk(image.after_power_loss(Random(seed)).root))["/d/c"]
        for image in images
        for seed in range(30)
    }
    assert contents == {b"old" * 400, b"new" * 500}
    assert {files_after(drive, seed)["/d/c"] for seed in range(30)} == {b"new" * 500}


def test_a_failed_sync_drops_what_it_should_have_written() -> None:
    drive, disk = disk_with_folder()
    file = disk.open("/d/f", create=True)
    disk.sync_dir("/d")
    file.pwrite((b"lost",), 0)
    drive.faults.append(Fault(errno.EIO, frozenset({Operation.SYNC}), "/d/*", times=1))
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.sync()
    assert file.pread(4, 0) == b"lost", "the page cache still shows it"
    assert {files_after(drive, seed)["/d/f"] for seed in range(20)} == {b""}


def test_a_full_drive_writes_only_the_bytes_that_fit() -> None:
    drive, disk = disk_with_folder()
    file = disk.open("/d/f", create=True)
    drive.free = 10
    with pytest.raises(OSError, match="No space") as failure:
        file.pwrite((b"x" * 25,), 0)
    assert failure.value.errno == errno.ENOSPC
    assert file.size() == 10
    with pytest.raises(OSError, match="No space"):
        disk.open("/d/g", create=True)
    file.truncate(4)
    assert disk.free_bytes("/d") == 6


def test_power_is_lost_at_the_requested_operation() -> None:
    drive, disk = disk_with_folder()
    lock = disk.lock("/d/.lock")
    assert lock is not None
    drive.crash_after(2)
    file = disk.open("/d/f", create=True)
    with pytest.raises(PowerLost):
        file.pwrite((b"x",), 0)
    with pytest.raises(PowerLost):
        disk.exists("/d")
    drive.power_loss(Random(1))
    disk.detach()
    with pytest.raises(PowerLost):
        disk.exists("/d")
    SimulatedDisk(drive).lock("/d/.lock")


def test_truncated_bytes_do_not_reappear() -> None:
    drive, disk = disk_with_folder()
    file = disk.open("/d/f", create=True)
    file.pwrite((b"s" * 3000,), 0)
    file.sync()
    disk.sync_dir("/d")
    file.truncate(700)
    file.pwrite((b"n" * 1000,), 700)
    for seed in range(200):
        content = files_after(drive, seed)["/d/f"]
        assert content is not None
        assert content[:700] == b"s" * 700
        assert content == b"s" * 3000 or b"s" not in content[700:]
