"""Requests to a cluster: its nodes in turn, bulk requests and mappings."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moldau.pipelines.connect.config.definition import Password
from moldau.pipelines.connect.connectors.http.client import Refused, Unavailable, client_tls
from moldau.pipelines.connect.connectors.search import settings as names

logger = logging.getLogger(__name__)

_BUSY = {429, 502, 503, 504}


class ItemResult(NamedTuple):
    """What became of one document of a bulk request."""

    status: int
    kind: str
    reason: str

    @property
    def is_busy(self) -> bool:
        return self.status in _BUSY


class SearchCluster:
    def __init__(self, config: Mapping[str, Any]) -> None:
        import httpx2

        self._urls = [each.rstrip("/") for each in config[names.URLS]]
        timeout = httpx2.Timeout(
            config[names.READ_TIMEOUT] / 1000, connect=config[names.CONNECT_TIMEOUT] / 1000
        )
        headers, auth = {}, None
        if isinstance(config[names.API_KEY], Password):
            headers["Authorization"] = f"ApiKey {config[names.API_KEY].value}"
        elif config[names.USER]:
            password = config[names.PASSWORD]
            auth = (config[names.USER], password.value if isinstance(password, Password) else "")
        tls = client_tls(config[names.CA_FILE], config[names.CERTIFICATE], config[names.KEY_FILE])
        self._client = httpx2.Client(timeout=timeout, headers=headers, auth=auth, verify=tls)
        self._transport_error = httpx2.TransportError
        self._compress: bool = config[names.COMPRESSION]

    def close(self) -> None:
        self._client.close()

    def bulk(self, lines: Sequence[str]) -> list[ItemResult]:
        """Send a bulk request; `Unavailable` if no node can take it."""
        answer = self._request("POST", "/_bulk", "".join(lines), "application/x-ndjson")
        found = answer.json()
        if not found.get("errors"):
            return [ItemResult(200, "", "")] * len(found["items"])
        results = []
        for item in found["items"]:
            (result,) = item.values()
            error = result.get("error") or {}
            results.append(
                ItemResult(result["status"], str(error.get("type", "")), str(error.get("reason", "")))
            )
        return results

    def ensure_index(self, index: str) -> None:
        """Create an index if it is missing; another task may do the same."""
        if self._request("HEAD", f"/{index}", missing=True).status_code == 404:
            answer = self._request("PUT", f"/{index}", "{}", missing=True, conflict=True)
            logger.info("Created the index %s: %s", index, answer.status_code)

    def put_mapping(self, index: str, properties: Mapping[str, Any]) -> None:
        self._request("PUT", f"/{index}/_mapping", json.dumps({"properties": properties}))

    def _request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        kind: str = "application/json",
        *,
        missing: bool = False,
        conflict: bool = False,
    ) -> Any:
        headers, content = {"Content-Type": kind}, None if body is None else body.encode()
        if self._compress and content is not None:
            headers["Content-Encoding"] = "gzip"
            content = gzip.compress(content, 3)
        reason = ""
        for _ in range(len(self._urls)):
            try:
                answer = self._client.request(
                    method, self._urls[0] + path, headers=headers if content else {}, content=content
                )
            except self._transport_error as error:
                reason = f"{type(error).__name__}: {error}"
            else:
                accepted = answer.is_success or (missing and answer.status_code == 404)
                if accepted or (conflict and answer.status_code == 400 and "exists" in answer.text):
                    return answer
                if answer.status_code not in _BUSY:
                    raise Refused(
                        f"{method} {path} was answered with {answer.status_code}: {answer.text[:300]}"
                    )
                reason = f"{answer.status_code}: {answer.text[:200]}"
            # The next node, now and for the following requests.
            self._urls.append(self._urls.pop(0))
        raise Unavailable(f"No node of the cluster could answer {method} {path}: {reason}")
