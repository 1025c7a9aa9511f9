"""The console as a service of `moldau.http.run`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from moldau.base.clock import SystemClock
from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.client.wire.settings import ClientSettings
from moldau.console.application import ConsoleApplication
from moldau.console.cluster.view import ClusterView
from moldau.console.login.oidc import OidcLogin
from moldau.console.login.provider import ProviderUnavailable
from moldau.console.pages.login import LoginPages
from moldau.console.records.masking import Masking
from moldau.console.services import Services
from moldau.console.settings import ConsoleSettings, Login
from moldau.console.sql import SqlRuns
from moldau.console.web.audit import AuditLog
from moldau.console.web.health import Health
from moldau.console.web.lag import LagEndpoints
from moldau.console.web.protection import Protection
from moldau.console.web.sessions import Sessions
from moldau.http.asgi import Application
from moldau.lag.alerts import Webhook

logger = logging.getLogger(__name__)

_SWEEP_S = 60.0


def create_service(properties: Mapping[str, str]) -> Console:
    """Create the console from properties; `ConfigError` names an invalid one."""
    return Console(ConsoleSettings.from_properties(properties))


class Console:
    def __init__(self, settings: ConsoleSettings) -> None:
        clock = SystemClock()
        self._settings = settings
        self._views = {
            name: ClusterView(
                name, ClientSettings.from_properties(properties), lag_window_s=settings.lag_window_s
            )
            for name, properties in settings.clusters.items()
            if settings.login is not Login.SCRAM
        }
        self._webhooks: dict[str, Webhook] = {}
        if settings.alert_webhook is not None:
            for name, view in self._views.items():
                self._webhooks[name] = Webhook(settings.alert_webhook, name)
                view.monitor.on_change.append(self._webhooks[name])
        self._oidc = None if settings.oidc is None else OidcLogin(settings.oidc, clock)
        self._sessions = Sessions(settings, self._views, clock, self._oidc)
        self._sql = SqlRuns() if settings.sql else None
        masking = Masking(settings.masked)
        self._services = {
            name: Services(each, masking, self._sql) for name, each in settings.services.items()
        }
        audit = AuditLog(settings.audit_file, clock)
        application = ConsoleApplication(
            settings,
            self._sessions,
            self._services,
            LoginPages(settings, self._sessions, self._oidc, audit),
            Health(settings, self._views, self._oidc, clock),
            audit,
        )
        lag = LagEndpoints(application, settings, self._views, self._sessions, self._webhooks, audit)
        self._application = Protection(lag, settings)
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def application(self) -> Application:
        return self._application

    async def start(self, urls: Sequence[str]) -> None:
        """Take the first snapshot of each cluster; `KafkaError` if none can be reached."""
        # The pages show what a broker that is gone leaves out; the log would repeat it with every refresh.
        logging.getLogger("moldau.lag").setLevel(logging.ERROR)
        self._sweeping = asyncio.create_task(self._sweep())
        if self._oidc is not None:
            try:
                await self._oidc.check()
            except ProviderUnavailable as error:
                logger.warning(
                    "Users cannot sign in until the identity provider answers: %s",
                    error,
                    extra=event("console.identity_provider_failed"),
                )
        results = await asyncio.gather(
            *(view.start() for view in self._views.values()), return_exceptions=True
        )
        failures = [each for each in results if isinstance(each, BaseException)]
        for failure in failures:
            if not isinstance(failure, KafkaError) or len(failures) == len(self._views):
                raise failure
            logger.warning("A cluster cannot be reached: %s", failure, extra=event("console.cluster_failed"))

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._sessions.close()
        if self._oidc is not None:
            self._oidc.close()
        for view in self._views.values():
            await view.close()
        for webhook in self._webhooks.values():
            await webhook.close()
        for services in self._services.values():
            await services.close()
        if self._sql is not None:
            await self._sql.close()

    async def failed(self) -> str:
        """The console shows an unreachable cluster as such, and continues."""
        await asyncio.Event().wait()
        return ""

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            await self._sessions.sweep()
