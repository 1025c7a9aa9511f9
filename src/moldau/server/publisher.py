"""Applies committed metadata images to the node, one after the other.

The quorum announces images synchronously and in order; applying an image may wait for the disk (new logs).
`image` is the last applied image, so responses describe only replicas that exist. `caught_up` delays a
response until a change of this node is applied, `until` does so for a change of another node. An image
that cannot be applied stops the node, because a partly applied image would be worse.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage

Apply = Callable[[MetadataDelta, MetadataImage], Awaitable[None]]
Shows = Callable[[MetadataImage], bool]


class MetadataPublisher:
    def __init__(self, apply: Apply, on_failure: Callable[[Exception], None]) -> None:
        self.image = MetadataImage.empty()
        self._apply = apply
        self._on_failure = on_failure
        self._queue: asyncio.Queue[tuple[MetadataDelta, MetadataImage]] = asyncio.Queue()
        self._announced = -1
        self._waiters: list[tuple[Shows, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._applying_since: float | None = None

    @property
    def applying_seconds(self) -> float:
        """The time for which the present image is being applied; 0 if none is."""
        begin = self._applying_since
        return 0.0 if begin is None else asyncio.get_running_loop().time() - begin

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def announce(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._announced = image.offset
        self._queue.put_nowait((delta, image))

    async def caught_up(self) -> None:
        """Wait until all announced images are applied."""
        announced = self._announced
        await self._shown(lambda image: image.offset >= announced)

    async def until(self, shows: Shows, timeout_seconds: float) -> bool:
        """Wait until an applied image meets a condition; return False after the timeout."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._shown(shows)
        except TimeoutError:
            return False
        return True

    async def _shown(self, shows: Shows) -> None:
        if not shows(self.image):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = (shows, waiter)
            self._waiters.append(entry)
            try:
                await waiter
            except asyncio.CancelledError:
                # Many waiters may be cancelled before the next image removes them.
                if entry in self._waiters:
                    self._waiters.remove(entry)
                raise

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._release(lambda waiter: waiter.cancel())

    async def _run(self) -> None:
        while True:
            self._applying_since = None
            delta, image = await self._queue.get()
            self._applying_since = asyncio.get_running_loop().time()
            try:
                await self._apply(delta, image)
            except Exception as error:  # noqa: BLE001  the image is not applied
                self._release(lambda waiter, reason=error: waiter.set_exception(reason))  # type: ignore[misc]
                self._on_failure(error)
                return
            self.image = image
            self._release(lambda waiter: waiter.set_result(None), image)

    def _release(
        self, release: Callable[[asyncio.Future[None]], object], image: MetadataImage | None = None
    ) -> None:
        """Release the waiters whose condition `image` meets, or all of them."""
        waiting = [(shows, waiter) for shows, waiter in self._waiters if not waiter.done()]
        ready = [image is None or shows(image) for shows, _ in waiting]
        self._waiters = [entry for entry, done in zip(waiting, ready, strict=True) if not done]
        for (_, waiter), done in zip(waiting, ready, strict=True):
            if done:
                release(waiter)
