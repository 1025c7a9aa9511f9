"""Work that nobody waits for ends with the node."""

from __future__ import annotations

import asyncio

import pytest

from moldau.server.tasks import BackgroundTasks


def test_close_cancels_tasks_and_refuses_new_ones() -> None:
    async def main() -> None:
        background, ended, begun = BackgroundTasks(), [], []

        async def wait() -> None:
            begun.append(1)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(1)

        background.start(wait())
        await asyncio.sleep(0)
        await background.close()
        assert (len(begun), len(ended)) == (1, 1)
        background.start(wait())
        await asyncio.sleep(0)
        assert len(begun) == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_the_failure_of_a_background_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        background = BackgroundTasks()

        async def fail() -> None:
            raise RuntimeError("no luck")

        background.start(fail())
        await asyncio.sleep(0.01)
        await background.close()

    asyncio.run(main())
    assert "no luck" in caplog.text
