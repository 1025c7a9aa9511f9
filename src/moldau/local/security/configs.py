"""The configs of a secured cluster on one machine: of its nodes and of its clients.

Clients use the listener named like its protocol. Brokers connect to each other through the same listener,
with their own certificate or as the SCRAM user `broker`; controllers demand a certificate of the brokers,
because they need no users for it. Certificates become short principals: `User:moldau`, `User:broker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.local.plan import BROKER_LISTENER, CONTROLLER_LISTENER
from moldau.local.security.files import BROKER, USER, SecurityFiles
from moldau.local.security.modes import DEFAULT_MECHANISM, SecurityMode

_MODULES = "org.apache.kafka.common.security"
_SCRAM = f"{_MODULES}.scram.ScramLoginModule"
_PLAIN = f"{_MODULES}.plain.PlainLoginModule"
_OAUTH = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"


@dataclass(frozen=True, slots=True)
class SecurityConfigs:
    mode: SecurityMode
    files: SecurityFiles

    # Nodes.

    def node_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of a node without security, changed to this one."""
        listener = self.mode.protocol
        return {
            **properties,
            "listeners": properties["listeners"].replace(f"{BROKER_LISTENER}://", f"{listener}://"),
            "listener.security.protocol.map": f"{listener}:{listener},{CONTROLLER_LISTENER}:SSL",
            "security.inter.broker.protocol": listener,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.files.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files.ca),
            "ssl.client.auth": "required" if self.mode is SecurityMode.MTLS else "requested",
            f"listener.name.{CONTROLLER_LISTENER.lower()}.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": r"RULE:^CN=([^,]*)$/$1/,DEFAULT",
            "super.users": f"User:{BROKER}",
            **self._sasl_properties(),
        }

    def scram_credentials(self) -> list[str]:
        """Return the users that formatting stores, as arguments of `--add-scram`."""
        if self.mode.mechanism is None:
            return []
        users = [(DEFAULT_MECHANISM, BROKER, self.files.broker_password)]
        if self.mode in (SecurityMode.SCRAM_SHA_256, SecurityMode.SCRAM_SHA_512):
            users.append((self.mode.value, USER, self.files.password))
        return [f"{mechanism}=[name={name},password={password}]" for mechanism, name, password in users]

    def _sasl_properties(self) -> dict[str, str]:
        mechanism = self.mode.mechanism
        if mechanism is None:
            return {}
        brokers = f'{_SCRAM} required username="{BROKER}" password="{self.files.broker_password}";'
        properties = {
            "sasl.enabled.mechanisms": ",".join(dict.fromkeys((mechanism, DEFAULT_MECHANISM))),
            "sasl.mechanism.inter.broker.protocol": DEFAULT_MECHANISM,
            _jaas(DEFAULT_MECHANISM): brokers,
        }
        match self.mode:
            case SecurityMode.PLAIN:
                properties[_jaas(mechanism)] = f'{_PLAIN} required user_{USER}="{self.files.password}";'
            case SecurityMode.SCRAM_SHA_256:
                properties[_jaas(mechanism)] = f"{_SCRAM} required;"
            case SecurityMode.OAUTHBEARER:
                properties[_jaas(mechanism)] = f'{_OAUTH} required unsecuredLoginStringClaim_sub="{BROKER}";'
        return properties

    # Clients.

    def client_properties(self) -> dict[str, str]:
        """Return the properties of Java clients and of Moldau's own, without `bootstrap.servers`."""
        properties = {
            "security.protocol": self.mode.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files.ca),
        }
        if self.mode is SecurityMode.MTLS:
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.files.client)}
        if self.mode.mechanism is not None:
            properties["sasl.mechanism"] = self.mode.mechanism
            properties["sasl.jaas.config"] = self._client_jaas()
        return properties

    def librdkafka_properties(self) -> dict[str, str]:
        properties = {"security.protocol": self.mode.protocol, "ssl.ca.location": str(self.files.ca)}
        if self.mode is SecurityMode.MTLS:
            path = str(self.files.client)
            properties |= {"ssl.certificate.location": path, "ssl.key.location": path}
        if self.mode is SecurityMode.OAUTHBEARER:
            properties |= {
                "sasl.mechanism": self.mode.value,
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={USER}",
            }
        elif self.mode.mechanism is not None:
            properties |= {
                "sasl.mechanism": self.mode.mechanism,
                "sasl.username": USER,
                "sasl.password": self.files.password,
            }
        return properties

    def python_arguments(self) -> dict[str, str]:
        """Return the arguments of kafka-python's clients; aiokafka takes them with an SSL context."""
        arguments = {"security_protocol": self.mode.protocol, "ssl_cafile": str(self.files.ca)}
        if self.mode is SecurityMode.MTLS:
            path = str(self.files.client)
            arguments |= {"ssl_certfile": path, "ssl_keyfile": path}
        if self.mode.mechanism is not None:
            arguments["sasl_mechanism"] = self.mode.mechanism
            if self.mode is not SecurityMode.OAUTHBEARER:
                arguments |= {"sasl_plain_username": USER, "sasl_plain_password": self.files.password}
        return arguments

    def _client_jaas(self) -> str:
        match self.mode:
            case SecurityMode.OAUTHBEARER:
                return f'{_OAUTH} required unsecuredLoginStringClaim_sub="{USER}";'
            case SecurityMode.PLAIN:
                module = _PLAIN
            case _:
                module = _SCRAM
        return f'{module} required username="{USER}" password="{self.files.password}";'


def _jaas(mechanism: str) -> str:
    return f"listener.name.sasl_ssl.{mechanism.lower()}.sasl.jaas.config"
