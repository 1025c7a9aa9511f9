"""The sessions of brokers: the time of the last heartbeat and the reported metadata offset.

This is soft state: it is not replicated and starts again with every active controller. Time is an argument,
in milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from moldau.metadata.image import BrokerRegistration
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest


class BrokerState(Enum):
    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


@dataclass(slots=True)
class _Session:
    epoch: int
    fenced: bool
    #: None if the process is known to have ended.
    last_contact_ms: int | None
    metadata_offset: int = -1
    #: The metadata offset that all other brokers must reach before this broker may stop; -1: no shutdown.
    shutdown_offset: int = -1

    @property
    def is_active(self) -> bool:
        return not self.fenced and self.shutdown_offset < 0


class Heartbeats:
    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}
        #: Sessions that have expired while this controller was active.
        self.timed_out = 0

    def activate(self, brokers: Iterable[BrokerRegistration], gone: int | None, now_ms: int) -> None:
        """Start the sessions of registered brokers; that of `gone` is expired."""
        self._sessions = {}
        for broker in brokers:
            contact = None if broker.id == gone else now_ms
            self._sessions[broker.id] = _Session(broker.epoch, broker.fenced, contact)

    def agree_with(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Go back to the committed registrations after uncommitted decisions are lost."""
        sessions, self._sessions = self._sessions, {}
        for broker_id, session in sessions.items():
            broker = brokers.get(broker_id)
            if broker is not None:
                again = _Session(
                    broker.epoch, broker.fenced, session.last_contact_ms, session.metadata_offset
                )
                if broker.in_controlled_shutdown and not broker.fenced:
                    again.shutdown_offset = session.shutdown_offset
                self._sessions[broker_id] = again

    def registered(self, broker_id: int, epoch: int, fenced: bool, now_ms: int) -> None:
        self._sessions[broker_id] = _Session(epoch, fenced, now_ms)

    def removed(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def has_valid_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        if session is None or session.fenced or session.epoch != epoch:
            return False
        return not self._expired(session, now_ms)

    def next_state(
        self, request: BrokerHeartbeatRequest, registration_offset: int, *, leads: Callable[[], bool]
    ) -> tuple[BrokerState, BrokerState]:
        """Return the current and the next state of a broker; `leads` is called only if needed."""
        session = self._sessions[request.broker_id]
        if session.shutdown_offset >= 0:
            return BrokerState.CONTROLLED_SHUTDOWN, self._while_stopping(session, leads())
        if session.fenced:
            return BrokerState.FENCED, _while_fenced(request, registration_offset)
        return BrokerState.UNFENCED, _while_unfenced(request, leads)

    def heard(self, broker_id: int, metadata_offset: int, now_ms: int) -> None:
        session = self._sessions[broker_id]
        session.last_contact_ms = now_ms
        session.metadata_offset = metadata_offset

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        session = self._sessions[broker_id]
        if session.shutdown_offset < 0:
            session.shutdown_offset = offset

    def set_fenced(self, broker_id: int, fenced: bool) -> None:
        """Set the fenced state; fencing ends a controlled shutdown."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.fenced = fenced
            if fenced:
                session.shutdown_offset = -1

    def expired_broker(self, now_ms: int) -> int | None:
        """Return an unfenced broker whose session has expired."""
        for broker_id, session in self._sessions.items():
            if not session.fenced and self._expired(session, now_ms):
                return broker_id
        return None

    def expire(self, broker_id: int) -> None:
        """Fence a broker whose session has expired."""
        self.timed_out += 1
        self.set_fenced(broker_id, True)

    def is_stopping(self, broker_id: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and session.shutdown_offset >= 0

    def _expired(self, session: _Session, now_ms: int) -> bool:
        contact = session.last_contact_ms
        return contact is None or now_ms - contact > self._session_timeout_ms

    def _while_stopping(self, session: _Session, leads: bool) -> BrokerState:
        if leads:
            return BrokerState.CONTROLLED_SHUTDOWN
        others = [other.metadata_offset for other in self._sessions.values() if other.is_active]
        followed = all(session.shutdown_offset <= offset for offset in others)
        return BrokerState.SHUTDOWN_NOW if followed else BrokerState.CONTROLLED_SHUTDOWN


def _while_fenced(request: BrokerHeartbeatRequest, registration_offset: int) -> BrokerState:
    if request.want_shut_down:
        return BrokerState.SHUTDOWN_NOW
    caught_up = request.current_metadata_offset >= registration_offset
    return BrokerState.UNFENCED if caught_up and not request.want_fence else BrokerState.FENCED


def _while_unfenced(request: BrokerHeartbeatRequest, leads: Callable[[], bool]) -> BrokerState:
    if request.want_fence:
        return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if request.want_shut_down:
        return BrokerState.CONTROLLED_SHUTDOWN if leads() else BrokerState.SHUTDOWN_NOW
    return BrokerState.UNFENCED
