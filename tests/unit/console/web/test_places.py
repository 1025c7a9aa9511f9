"""Places for requests that run at a time."""

from __future__ import annotations

import asyncio

import pytest

from moldau.console.web.call import Refused
from moldau.console.web.places import Places


def test_more_requests_wait_and_are_refused_when_no_place_becomes_free() -> None:
    async def play() -> None:
        places, running, most = Places(2, "searches", 5.0), [], []
        gate = asyncio.Event()

        async def search() -> None:
            async with places.one():
                running.append(1)
                most.append(len(running))
                await gate.wait()
                running.pop()

        searches = [asyncio.create_task(search()) for _ in range(6)]
        await asyncio.sleep(0)
        searches[0].cancel()
        gate.set()
        await asyncio.gather(*searches, return_exceptions=True)
        assert max(most) == 2 and len(most) == 6
        impatient = Places(1, "exports", 0.0)
        async with impatient.one():
            with pytest.raises(Refused, match="1 exports of this cluster are running") as refused:
                async with impatient.one():
                    pass
        assert refused.value.status == 503
        async with impatient.one():
            pass

    asyncio.run(play())
