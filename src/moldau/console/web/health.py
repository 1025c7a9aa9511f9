"""`GET /healthz`: 200 if the console can be used, which includes signing in.

Without passwords the console reads the clusters itself, and its snapshots show whether they answer. With the
users' passwords it has no connection before the first login, so that it probes the clusters; and with OpenID
Connect the identity provider must be known. Results of probes are kept for some seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, Response

from moldau.base.clock import Clock
from moldau.base.json_log import event
from moldau.console.cluster.view import ClusterView
from moldau.console.login.accounts import reachable
from moldau.console.login.oidc import OidcLogin
from moldau.console.login.provider import ProviderUnavailable
from moldau.console.settings import ConsoleSettings, Login

logger = logging.getLogger(__name__)

_KEPT_S: Final = 5.0


class Health:
    def __init__(
        self,
        settings: ConsoleSettings,
        views: Mapping[str, ClusterView],
        oidc: OidcLogin | None,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._views = views
        self._oidc = oidc
        self._clock = clock
        self._probed: dict[str, str | None] = {}
        self._probed_s = float("-inf")
        self._probing = asyncio.Lock()

    async def respond(self) -> Response:
        clusters = await self._clusters()
        usable = any(error is None for error in clusters.values())
        for name, error in clusters.items():
            if error is not None:
                logger.info(
                    "The cluster %s cannot be used: %s",
                    name,
                    error,
                    extra=event("console.cluster_failed", cluster=name),
                )
        if self._oidc is not None:
            try:
                await self._oidc.check()
            except ProviderUnavailable as error:
                usable = False
                logger.info(
                    "The identity provider cannot be used: %s",
                    error,
                    extra=event("console.identity_provider_failed"),
                )
        body: dict[str, object] = {"status": "ok" if usable else "unreachable"}
        if self._settings.login is None:
            # Names and addresses of brokers are shown to users only.
            body["clusters"] = clusters
        return JSONResponse(body, 200 if usable else 503)

    async def _clusters(self) -> Mapping[str, str | None]:
        """Return the reason why a cluster cannot be used, by name; None if it can."""
        if self._settings.login is not Login.SCRAM:
            return {name: view.snapshot.error for name, view in self._views.items()}
        async with self._probing:
            if self._clock.monotonic() - self._probed_s > _KEPT_S:
                clusters = self._settings.clusters
                found = await asyncio.gather(*map(reachable, clusters.values()))
                self._probed = dict(zip(clusters, found, strict=True))
                self._probed_s = self._clock.monotonic()
        return self._probed
