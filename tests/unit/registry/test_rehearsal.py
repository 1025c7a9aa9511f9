"""Rehearsals: errors reach the caller, and neither closed connections nor an exit wait for them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from moldau.http.errors import ApiError
from moldau.registry.rehearsal import Rehearsals
from tests.unit.registry.requests import on_a_loop

EXITS = """
import asyncio, time
from moldau.registry.rehearsal import Rehearsals

async def main():
    rehearsals = Rehearsals()
    running = asyncio.create_task(rehearsals.run(lambda: time.sleep(60)))
    await asyncio.sleep(0.1)
    running.cancel()
    rehearsals.close()

asyncio.run(main())
"""


@on_a_loop
async def test_errors_reach_the_caller() -> None:
    rehearsals = Rehearsals()

    def refuse() -> None:
        raise ApiError(422, 42201, "no schema")

    with pytest.raises(ApiError, match="no schema"):
        await rehearsals.run(refuse)
    with pytest.raises(RuntimeError):
        await rehearsals.run(lambda: next(iter(())))
    await rehearsals.run(lambda: None)
    rehearsals.close()


@on_a_loop
async def test_the_work_of_a_closed_connection_is_skipped() -> None:
    rehearsals = Rehearsals()
    release, ran = threading.Event(), list[int]()
    first = asyncio.create_task(rehearsals.run(release.wait))
    second = asyncio.create_task(rehearsals.run(lambda: ran.append(2)))
    third = asyncio.create_task(rehearsals.run(lambda: ran.append(3)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(first, third)
    assert ran == [3]
    rehearsals.close()


def test_the_process_exits_while_a_rehearsal_runs() -> None:
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", EXITS], check=True, timeout=50)
    assert time.monotonic() - begun < 30
