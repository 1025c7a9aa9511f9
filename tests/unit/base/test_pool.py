from __future__ import annotations

import asyncio
import threading

import pytest

from moldau.base.pool import InlinePool, Pool, ThreadPool


def where() -> int:
    return threading.get_ident()


def fail() -> None:
    raise OSError("broken")


@pytest.mark.parametrize("make", [lambda: ThreadPool(2), InlinePool])
def test_results_and_exceptions_are_returned(make) -> None:  # type: ignore[no-untyped-def]
    async def run(pool: Pool) -> None:
        assert await pool.run(max, 3, 5) == 5
        assert await pool.run(sorted, [2, 1], reverse=True) == [2, 1]
        with pytest.raises(OSError, match="broken"):
            await pool.run(fail)

    pool = make()
    asyncio.run(run(pool))
    pool.close()


def test_thread_pool_does_not_block_the_loop_and_inline_pool_does() -> None:
    async def run() -> None:
        pool = ThreadPool(1)
        assert await pool.run(where) != threading.get_ident()
        assert await InlinePool().run(where) == threading.get_ident()
        pool.close()

    asyncio.run(run())
