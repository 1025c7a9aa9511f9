"""The TLS context of https listeners, and its replacement when a store file changes.

New connections take the new context, open ones keep theirs. If a changed file cannot be used, for example
because it is only half written, the reason is logged once and the old context stays.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from moldau.base.json_log import event
from moldau.config.definition import ConfigError
from moldau.http.settings import HttpSettings
from moldau.security.tls.settings import Stamps, TlsSettings

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger(__name__)


class ServerTls:
    def __init__(self, settings: HttpSettings) -> None:
        self._settings = TlsSettings.of(settings.tls_property)
        self._stamps, self.context = self._load()
        #: Why the last change could not be applied.
        self._failure = ""

    async def renew(self) -> bool:
        """Load the files again if they have changed; return whether there is a new context."""
        loaded = await asyncio.to_thread(self._renewed)
        if loaded is None:
            return False
        self._failure = ""
        self._stamps, self.context = loaded
        logger.info(
            "New connections use the changed certificates",
            extra=event("certificates.replaced", files=", ".join(self._settings.files)),
        )
        return True

    def _renewed(self) -> tuple[Stamps, SSLContext] | None:
        if self._settings.stamps() == self._stamps:
            return None
        try:
            return self._load()
        except ConfigError as error:
            if error.sentence != self._failure:
                self._failure = error.sentence
                logger.error(
                    "The listeners keep their certificates: %s",
                    error.sentence,
                    extra=event("certificates.refused"),
                )
            return None

    def _load(self) -> tuple[Stamps, SSLContext]:
        from moldau.security.tls.context import server_context

        # Before the files are read: a change in between is detected later.
        stamps = self._settings.stamps()
        return stamps, server_context(self._settings)
