"""Images are applied one after the other; whoever waits for one is told, whoever gives up is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.server.publisher import MetadataPublisher


def image(offset: int) -> tuple[MetadataDelta, MetadataImage]:
    delta = MetadataDelta(MetadataImage.empty())
    return delta, delta.apply(offset, 1)


def test_a_cancelled_waiter_is_removed_at_once() -> None:
    async def main() -> None:
        async def apply(delta: MetadataDelta, image: MetadataImage) -> None:
            pass

        publisher = MetadataPublisher(apply, lambda error: None)
        publisher.start()
        for _ in range(10):
            assert not await publisher.until(lambda image: image.offset >= 5, 0.001)
        assert publisher._waiters == []
        waiting = asyncio.create_task(publisher.until(lambda image: image.offset >= 5, 10.0))
        await asyncio.sleep(0)
        publisher.announce(*image(4))
        publisher.announce(*image(5))
        assert await waiting
        assert publisher.image.offset == 5
        await publisher.close()

    asyncio.run(main())


def test_an_image_that_cannot_be_applied_fails_its_waiters() -> None:
    async def main() -> None:
        async def apply(delta: MetadataDelta, image: MetadataImage) -> None:
            raise RuntimeError("half of it is in place")

        failures: list[Exception] = []
        publisher = MetadataPublisher(apply, failures.append)
        publisher.start()
        publisher.announce(*image(1))
        with pytest.raises(RuntimeError):
            await publisher.caught_up()
        assert [str(each) for each in failures] == ["half of it is in place"]
        await publisher.close()

    asyncio.run(main())
