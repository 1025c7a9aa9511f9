"""Threads for blocking calls: bounded, reused, and no obstacle to the end of the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from moldau.base.daemon_threads import DaemonThreads


def test_results_and_exceptions_reach_the_caller() -> None:
    threads = DaemonThreads(2, "test")
    assert threads.submit(divmod, 7, 2).result(10) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 1, 0).result(10)
    threads.shutdown()


def test_an_iterator_that_ends_is_an_error_that_a_coroutine_can_await() -> None:
    threads = DaemonThreads(1, "test")

    async def call() -> None:
        await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(threads, next, iter(())), 10)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(call())
    threads.shutdown()


def test_calls_that_were_cancelled_are_skipped() -> None:
    threads = DaemonThreads(1, "test")
    release, ran = threading.Event(), list[int]()
    first, second, third = (
        threads.submit(release.wait, 10),
        threads.submit(ran.append, 2),
        threads.submit(ran.append, 3),
    )
    assert second.cancel()
    release.set()
    assert first.result(10)
    third.result(10)
    assert ran == [3]
    threads.shutdown()


def test_at_most_so_many_calls_run_at_the_same_time() -> None:
    threads = DaemonThreads(2, "test")
    both_run, go = threading.Barrier(3), threading.Event()

    def call() -> str:
        both_run.wait(10)
        go.wait(10)
        return threading.current_thread().name

    first = [threads.submit(call) for _ in range(2)]
    both_run.wait(10)
    third = threads.submit(lambda: threading.current_thread().name)
    assert not third.done()
    go.set()
    assert third.result(10) in {each.result(10) for each in first}
    threads.shutdown()


def test_the_process_ends_while_a_call_waits() -> None:
    program = (
        "import threading, moldau.base.daemon_threads as t;"
        "started = threading.Event();"
        "t.DaemonThreads(1, 'test').submit(lambda: (started.set(), threading.Event().wait()));"
        "started.wait(10)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=20, check=False).returncode == 0
