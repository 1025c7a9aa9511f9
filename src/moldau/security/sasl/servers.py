"""The SASL mechanisms of one listener, built once from its configs.

The JAAS entry of a mechanism comes from `listener.name.<listener>.<mechanism>.sasl.jaas.config`, else from
the sections `<listener>.KafkaServer` and `KafkaServer` of the JAAS file. Everything that can be wrong with
the configs is reported here, before a client connects.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.base.log_throttle import Repeats
from moldau.config.definition import ConfigError
from moldau.security.jaas import LoginModule, server_modules
from moldau.security.sasl.mechanism import (
    GSSAPI,
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SaslServer,
    ScramCredentials,
    TokenCache,
)
from moldau.security.sasl.plain import LOGIN_MODULE as PLAIN_MODULE
from moldau.security.sasl.plain import PlainServer, PlainUsers
from moldau.security.sasl.scram import LOGIN_MODULE as SCRAM_MODULE
from moldau.security.sasl.scram import ScramServer
from moldau.security.system_properties import jaas_sections, system_properties

#: Returns the text of a config for a mechanism of the listener, or for the node if the mechanism is None. The
#: value of `sasl.jaas.config` must have the prefix of the listener and the mechanism, as in Kafka.
GetConfig = Callable[[str, str | None], str | None]
#: Makes the server's side of one exchange.
MakeServer = Callable[[], SaslServer]


class SaslServers:
    def __init__(self, makers: Mapping[str, MakeServer]) -> None:
        self._makers = dict(makers)

    @classmethod
    def of(
        cls,
        listener: str,
        mechanisms: Sequence[str],
        get: GetConfig,
        credentials: ScramCredentials,
        tokens: TokenCache,
        clock: Clock,
        randomness: Randomness,
        environment: Mapping[str, str] | None = None,
    ) -> SaslServers:
        """Build the mechanisms of a listener; `ConfigError` names what is missing."""
        if not mechanisms:
            raise ConfigError(
                f"Listener {listener}: no SASL mechanisms are enabled (sasl.enabled.mechanisms)"
            )
        builder = _Builder(listener, get, credentials, tokens, clock, randomness, environment)
        return cls({name: builder.maker(name) for name in dict.fromkeys(mechanisms)})

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return tuple(self._makers)

    def create(self, mechanism: str, *, host: str = "", tls: bool = False) -> SaslServer:
        """Begin an exchange; `KeyError` if the mechanism is not enabled."""
        return self._makers[mechanism]()


class _Builder:
    def __init__(
        self,
        listener: str,
        get: GetConfig,
        credentials: ScramCredentials,
        tokens: TokenCache,
        clock: Clock,
        randomness: Randomness,
        environment: Mapping[str, str] | None,
    ) -> None:
        self._listener = listener
        self._get = get
        self._credentials = credentials
        self._tokens = tokens
        self._clock = clock
        self._randomness = randomness
        self._properties = system_properties(environment)
        self._sections = jaas_sections(self._properties)

    def maker(self, mechanism: str) -> MakeServer:
        if mechanism not in MECHANISMS:
            raise ConfigError(
                f"Listener {self._listener}: SASL mechanism {mechanism} is not supported; "
                f"supported are {', '.join(MECHANISMS)}"
            )
        modules = server_modules(
            self._listener, self._get("sasl.jaas.config", mechanism), self._properties, self._sections
        )
        match mechanism:
            case "PLAIN":
                return self._plain(modules)
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                return self._scram(mechanism, modules)
            case "OAUTHBEARER":
                return self._oauth(modules)
            case _:
                return self._kerberos(modules)

    def _plain(self, modules: Sequence[LoginModule]) -> MakeServer:
        self._refuse_callback_handler(PLAIN)
        options: dict[str, str] = {}
        for module in self._own(PLAIN, modules, PLAIN_MODULE):
            options = {**module.options, **options}
        users = PlainUsers(options, self._random_key())
        return lambda: PlainServer(users)

    def _scram(self, mechanism: str, modules: Sequence[LoginModule]) -> MakeServer:
        self._refuse_callback_handler(mechanism)
        self._own(mechanism, modules, SCRAM_MODULE)
        decoy_key = self._decoy_key()
        return lambda: ScramServer(
            mechanism, self._credentials, self._tokens, self._clock, self._randomness, decoy_key
        )

    def _oauth(self, modules: Sequence[LoginModule]) -> MakeServer:
        from moldau.security.sasl.oauthbearer.exchange import OAuthServer
        from moldau.security.sasl.oauthbearer.settings import LOGIN_MODULE, validator_of

        options = self._own(OAUTHBEARER, modules, LOGIN_MODULE)[0].options
        with self._naming_listener():
            validator = validator_of(
                lambda name: self._get(name, OAUTHBEARER), options, self._properties, self._clock
            )
        repeats = Repeats(interval_s=1.0)
        return lambda: OAuthServer(validator, self._clock, repeats)

    def _kerberos(self, modules: Sequence[LoginModule]) -> MakeServer:
        from moldau.security.sasl.kerberos.settings import LOGIN_MODULES, server_of

        self._refuse_callback_handler(GSSAPI)
        options = self._own(GSSAPI, modules, *LOGIN_MODULES)[0].options
        with self._naming_listener():
            return server_of(lambda name: self._get(name, GSSAPI), options, self._properties)

    @contextmanager
    def _naming_listener(self) -> Iterator[None]:
        """Add the listener to the message of a `ConfigError`."""
        try:
            yield
        except ConfigError as error:
            raise ConfigError(f"Listener {self._listener}: {error}") from None

    def _own(self, mechanism: str, modules: Iterable[LoginModule], *names: str) -> list[LoginModule]:
        """Return the entries of the mechanism's own login module; there is at least one."""
        found = [module for module in modules if module.name in names]
        if not found:
            others = ", ".join(module.name for module in modules)
            raise ConfigError(
                f"Listener {self._listener}: the JAAS configuration of SASL mechanism {mechanism} needs "
                f"the login module {names[0]}, not {others}"
            )
        return found

    def _refuse_callback_handler(self, mechanism: str) -> None:
        name = "sasl.server.callback.handler.class"
        if handler := self._get(name, mechanism):
            raise ConfigError(
                f"Listener {self._listener}: {name}={handler} is not supported for {mechanism}, "
                "it is a Java class"
            )

    def _random_key(self) -> bytes:
        return self._randomness.getrandbits(256).to_bytes(32, "big")

    def _decoy_key(self) -> bytes:
        """Return a secret that is the same on all nodes if possible, so that decoys look alike."""
        shared = self._get("delegation.token.secret.key", None)
        if not shared:
            return self._random_key()
        return hmac.digest(shared.encode(), b"SCRAM salts of unknown users", "sha256")
