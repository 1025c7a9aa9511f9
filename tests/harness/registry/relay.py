"""A relay between a client and a broker that can be cut: data is held, as on a broken cable, and not lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading


class Relay:
    """Relays connections to `port` on its own port, in a thread, until the context ends."""

    def __init__(self, listen: int, port: int) -> None:
        self._listen = listen
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    def __enter__(self) -> Relay:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def cut(self) -> None:
        """Hold all data from now on, in both directions; connections stay open."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def heal(self) -> None:
        """Deliver what was held, and continue."""
        self._loop.call_soon_threadsafe(self._open.set)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._open.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._listen)
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
        for pumping in (self._pump(reader, to_writer), self._pump(to_reader, writer)):
            task = asyncio.ensure_future(pumping)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
