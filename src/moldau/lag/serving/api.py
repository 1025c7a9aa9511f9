"""Burrow's HTTP API over lag monitors, one per cluster.

| path | answer |
|---|---|
| `/burrow/admin`, `/burrow/admin/ready` | GOOD; READY, or 503 STARTING before the first round |
| `/v3/kafka` | names of the clusters |
| `/v3/kafka/CLUSTER` | addresses and intervals |
| `/v3/kafka/CLUSTER/topic` | topics that groups read |
| `/v3/kafka/CLUSTER/topic/TOPIC` | log end offsets |
| `/v3/kafka/CLUSTER/topic/TOPIC/consumers` | groups that read the topic |
| `/v3/kafka/CLUSTER/consumer` | names of the groups |
| `/v3/kafka/CLUSTER/consumer/GROUP` | the commits in the window |
| `/v3/kafka/CLUSTER/consumer/GROUP/status` | status, and the partitions that are not OK |
| `/v3/kafka/CLUSTER/consumer/GROUP/lag` | status and all partitions |
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from moldau.http.asgi import Receive, Scope, Send, send_json, send_response
from moldau.lag.evaluation.verdicts import LagSnapshot
from moldau.lag.monitor import LagMonitor
from moldau.lag.serving import burrow
from moldau.lag.serving.burrow import Json

_TEXT: Final = b"text/plain; charset=utf-8"
_UNKNOWN_PATH: Final[Json] = {"error": True, "message": "invalid request type", "result": {}}
_ALLOWED: Final = ((b"allow", b"GET, HEAD"),)


class NotFound(Exception):
    """The cluster, topic or consumer does not exist; the message is Burrow's."""


class NotRead(Exception):
    """The cluster could not be read yet; the message says why."""


class BurrowApi:
    """An ASGI application. `clusters` may change while it runs.

    `names` are the clusters that are listed, if it is more than those of which there are monitors.
    """

    def __init__(self, clusters: Mapping[str, LagMonitor], names: Collection[str] | None = None) -> None:
        self._clusters = clusters
        self._names = clusters if names is None else names
        self._host = socket.gethostname()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            await send_response(send, 405, b"Method Not Allowed\n", _TEXT, _ALLOWED)
        elif path in ("/burrow/admin", "/burrow/admin/ready"):
            await self._admin(send, ready=path.endswith("ready"))
        else:
            status, body = self._answer(path, _segments(scope))
            await send_json(send, status, body)

    async def _admin(self, send: Send, *, ready: bool) -> None:
        starting = any(not each.snapshot.time_ms for each in self._clusters.values())
        if ready and starting:
            await send_response(send, 503, b"STARTING", _TEXT)
        else:
            await send_response(send, 200, b"READY" if ready else b"GOOD", _TEXT)

    def _answer(self, path: str, segments: Sequence[str]) -> tuple[int, Json]:
        if tuple(segments[:2]) != ("v3", "kafka") or "" in segments[2:]:
            return 404, _UNKNOWN_PATH
        request = {"url": path, "host": self._host}
        try:
            found = self._find(segments[2:])
        except NotFound as error:
            return 404, {"error": True, "message": str(error), "request": request}
        except NotRead as error:
            return 503, {"error": True, "message": str(error), "request": request}
        if found is None:
            return 404, _UNKNOWN_PATH
        missing = "status" in found and found["status"]["status"] == "NOTFOUND"
        return 404 if missing else 200, {"error": False, **found, "request": request}

    def _find(self, segments: Sequence[str]) -> Json | None:
        match segments:
            case []:
                return {"message": "cluster list returned", "clusters": list(self._names)}
            case [cluster]:
                return {"message": "cluster module detail returned", "module": self._module(cluster)}
            case [cluster, "topic", *rest]:
                return self._topics(self._monitor(cluster), rest)
            case [cluster, "consumer", *rest]:
                return self._consumers(cluster, rest)
        return None

    def _monitor(self, cluster: str, message: str = "cluster not found") -> LagMonitor:
        monitor = self._clusters.get(cluster)
        if monitor is None:
            raise NotFound(message)
        return monitor

    @staticmethod
    def _snapshot(monitor: LagMonitor) -> LagSnapshot:
        """Return the verdicts; without any, a group that exists would seem not to."""
        snapshot = monitor.snapshot
        if not snapshot.time_ms:
            reason = snapshot.error or "the first round of requests is not complete"
            raise NotRead(f"cluster not read yet: {reason}")
        return snapshot

    def _module(self, cluster: str) -> Json:
        monitor = self._monitor(cluster, "cluster module not found")
        interval_s = monitor.rules.interval_ms // 1000
        return {
            "class-name": "kafka",
            "servers": [str(each) for each in monitor.settings.bootstrap],
            "client-profile": {
                "name": "",
                "client-id": monitor.settings.client_id,
                "kafka-version": "",
                "tls": None,
                "sasl": None,
            },
            "topic-refresh": interval_s,
            "offset-refresh": interval_s,
        }

    def _topics(self, monitor: LagMonitor, rest: Sequence[str]) -> Json | None:
        snapshot = self._snapshot(monitor)
        match rest:
            case []:
                return {"message": "topic list returned", "topics": sorted(snapshot.topics)}
            case [topic]:
                if topic not in snapshot.topics:
                    raise NotFound("cluster or topic not found")
                offsets = burrow.topic_offsets(
                    snapshot.topics[topic], snapshot.partition_counts.get(topic, 0)
                )
                return {"message": "topic offsets returned", "offsets": offsets}
            case [topic, "consumers"]:
                consumers = burrow.consumers_of(topic, snapshot.groups.values())
                return {"message": "consumers of topic returned", "consumers": consumers}
        return None

    def _consumers(self, cluster: str, rest: Sequence[str]) -> Json | None:
        monitor = self._clusters.get(cluster)
        groups = {} if monitor is None else self._snapshot(monitor).groups
        match rest:
            case []:
                self._monitor(cluster)
                return {"message": "consumer list returned", "consumers": list(groups)}
            case [group]:
                if monitor is None or group not in groups:
                    raise NotFound("cluster or consumer not found")
                commits, capacity = monitor.commits(group), monitor.rules.capacity
                topics = burrow.group_topics(groups[group], commits, capacity)
                return {"message": "consumer detail returned", "topics": topics}
            case [group, "status" | "lag" as which]:
                shown = burrow.group_status(cluster, group, groups.get(group), all_partitions=which == "lag")
                return {"message": "consumer status returned", "status": shown}
        return None


def _segments(scope: Scope) -> list[str]:
    """Return the parts of the path; a name may contain an encoded slash."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    text = raw.partition(b"?")[0].decode("ascii", "replace")
    return [unquote(part) for part in text.split("/")[1:]]
