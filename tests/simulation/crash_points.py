"""Power loss at every disk operation of a workload: each is tried as the last one, with several losses each.

The workload runs once; at every operation the drive's image and a copy of the history are kept. Afterwards
every image loses power, is recovered and checked; some of these recoveries lose power themselves, at every
operation or a sample of them. More losses are tried with MOLDAU_SIMULATION_SEEDS.
"""

from __future__ import annotations

import os
from random import Random
from typing import NamedTuple

from moldau.storage.log.config import LogConfig
from moldau.testing.simulation.drive import Drive, DriveImage
from tests.simulation.history import History
from tests.simulation.logs import Logs, Workload, check_continues, check_recovery, run

SEEDS = int(os.environ.get("MOLDAU_SIMULATION_SEEDS", "1"))
#: The number of operations of one recovery that are tried as its last.
_SECOND_CRASHES = 3


class CrashPoint(NamedTuple):
    operation: int
    image: DriveImage
    history: History


def crash_points(workload: Workload, config: LogConfig, directories: int = 1) -> list[CrashPoint]:
    """Run a workload to its end and record every operation."""
    drive, history = Drive(), History()
    points: list[CrashPoint] = []
    logs = Logs(drive, history, config, directories)
    drive.on_operation = lambda: points.append(CrashPoint(drive.operations, drive.image(), history.copy()))
    run(workload(logs))
    return points


def explore(workload: Workload, config: LogConfig, *, directories: int = 1, losses: int = 2) -> int:
    """Check all crash points of a workload; return the number of recoveries."""
    points = crash_points(workload, config, directories)
    tried = 0
    for point in points:
        for number in range(losses * SEEDS):
            seed = f"{point.operation}/{number}"
            try:
                tried += _try(point, config, directories, seed)
            except BaseException as error:
                error.add_note(f"power lost at operation {point.operation} of {len(points)}, losses {seed!r}")
                raise
    return tried


def _try(point: CrashPoint, config: LogConfig, directories: int, seed: str) -> int:
    random = Random(seed)
    drive = point.image.after_power_loss(random)
    images: list[DriveImage] = []
    drive.on_operation = lambda: images.append(drive.image())
    logs = Logs(drive, point.history.copy(), config, directories)
    run(_recover(logs, live_on=random.random() < 0.3))
    for image in random.sample(images, min(_SECOND_CRASHES, len(images))) if random.random() < 0.3 else ():
        again = Logs(image.after_power_loss(random), point.history.copy(), config, directories)
        run(_recover(again, live_on=False))
    return 1


async def _recover(logs: Logs, *, live_on: bool) -> None:
    await check_recovery(logs)
    logs.drive.on_operation = None
    if live_on:
        await check_continues(logs)
