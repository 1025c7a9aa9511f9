"""Explanations of failed connections: the problem at the address, and its remedy."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.cli.moldau.doctor.certificates import ServerCertificate
from moldau.cli.moldau.doctor.certificates import explain as explain_tls
from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.cli.moldau.doctor.listener import Listener
from moldau.cli.moldau.doctor.probe import Probe, Reached
from moldau.client.wire.settings import Address
from moldau.network.failures import LoginFailed, TlsFailed


def explain(found: Probe, mechanism: str = "") -> Finding:
    """Return the problem of an address where the client was not served; `mechanism` is the client's."""
    match found.reached:
        case Reached.OTHER_PROTOCOL if found.listener is not None:
            return Finding(Level.PROBLEM, *_other_protocol(found.address, found.listener, found.detail))
        case Reached.TLS_FAILED if isinstance(found.failure, TlsFailed):
            return explain_tls(certificate_of(found), found.address, found.failure.reason)
        case Reached.LOGIN_FAILED:
            return Finding(Level.PROBLEM, *_login(found, mechanism))
        case Reached.INVALID_CLIENT:
            return Finding(
                Level.PROBLEM,
                f"The settings of the client cannot be used: {found.detail}",
                "Correct them in the properties file.",
            )
        case _:
            return Finding(Level.PROBLEM, *_explain_address(found))


def certificate_of(found: Probe) -> ServerCertificate | None:
    if found.listener is None or found.listener.certificate is None:
        return None
    try:
        return ServerCertificate.read(found.listener.certificate)
    except ValueError:
        return None


def _other_protocol(at: Address, listener: Listener, client: str) -> tuple[str, str]:
    """Return what is wrong if listener and client have different security protocols."""
    change = f"Set security.protocol={listener.protocol} in the client"
    other = f"or use the port of a listener with {client}."
    if listener.sasl and not client.startswith("SASL_"):
        offered = ", ".join(listener.mechanisms)
        transport = " over TLS" if listener.tls else ""
        return (
            f"{at} requires SASL authentication ({offered}){transport}, but the client is configured for "
            f"{client}.",
            f"{change}, with sasl.mechanism and sasl.jaas.config; {other}",
        )
    if listener.tls and not client.endswith("SSL"):
        also = "" if listener.sasl or not listener.requires_certificate else " (SASL_SSL if it requires SASL)"
        return (
            f"{at} speaks TLS, but the client is configured for {client}.",
            f"{change}{also}, {other}",
        )
    if client.endswith("SSL") and not listener.tls:
        return (
            f"{at} speaks {listener.protocol}, without TLS, but the client is configured for {client}.",
            f"{change} (then nothing is encrypted), {other}",
        )
    return (
        f"{at} does not use SASL, but the client is configured for {client}.",
        f"{change}, {other}",
    )


def _login(found: Probe, mechanism: str) -> tuple[str, str]:
    at, failure = found.address, found.failure
    enabled = found.listener.mechanisms if found.listener is not None else ()
    if isinstance(failure, LoginFailed) and failure.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        listed = ", ".join(failure.mechanisms or enabled)
        return (
            f"{at} has not enabled the SASL mechanism {mechanism}; enabled are {listed}.",
            "Set sasl.mechanism to one of these, or add it to sasl.enabled.mechanisms of the broker.",
        )
    if not isinstance(failure, LoginFailed):
        return (
            f"The client has no credentials for {mechanism}: {found.detail}.",
            "Check sasl.jaas.config: the login module, the keytab or ticket, or the token endpoint.",
        )
    return f"{at} refused the login with {mechanism}: {failure.reason}.", _login_advice(mechanism)


def _login_advice(mechanism: str) -> str:
    if mechanism == "PLAIN":
        return (
            "Compare username and password in the client's sasl.jaas.config with user_<name> in the broker's "
            "(listener.name.<listener>.plain.sasl.jaas.config)."
        )
    if mechanism.startswith("SCRAM"):
        return (
            "Wrong password, or the user has no credential for this mechanism: `kafka-configs --describe "
            "--entity-type users` lists them, `--alter --add-config "
            f"'{mechanism}=[password=...]' --entity-type users --entity-name USER` sets one."
        )
    if mechanism == "OAUTHBEARER":
        return (
            "The token has expired, or its issuer, audience, scope or key is refused: see the broker's log."
        )
    return (
        "Check the principals and clocks, and sasl.kerberos.service.name: it is the primary of the broker's."
    )


def _explain_address(found: Probe) -> tuple[str, str]:
    """Return what is wrong with an address where no broker answered, and what to do."""
    at, host = found.address, found.address.host
    explanations = {
        Reached.NAME_UNKNOWN: (
            f"The name {host} cannot be resolved on this machine ({found.detail}).",
            "Check the spelling. For a name that exists only inside Docker or Kubernetes, add a listener "
            "that advertises a name or address known here, or a line in /etc/hosts.",
        ),
        Reached.REFUSED: (
            f"Nothing listens at {at} ({', '.join(found.resolved)}): connection refused.",
            "Is the broker running (`moldau dev` starts one)? Is this the port in its `listeners`? In a "
            "container, is the port published?",
        ),
        Reached.TIMED_OUT: (
            f"{at} ({', '.join(found.resolved)}) does not answer.",
            "A firewall drops the packets, or the address is in a network that cannot be reached from here.",
        ),
        Reached.UNREACHABLE: (
            f"There is no route to {at} ({', '.join(found.resolved)}): {found.detail}.",
            "The address is in a network that cannot be reached from here. Use another address.",
        ),
        Reached.CONTROLLER: (
            f"{at} is the listener of a controller; clients connect to brokers.",
            "Use the port of a listener that is not in controller.listener.names.",
        ),
        Reached.NOT_KAFKA: (
            f"{at} {found.detail}.",
            "Use the port of a Kafka listener; it is in the broker's `listeners`.",
        ),
        Reached.SILENT: (
            f"{at} accepts connections but does not answer Kafka requests: {found.detail}.",
            "Another program may use the port, the broker may still be starting, or it has reached "
            "max.connections. Check the broker's log.",
        ),
    }
    return explanations[found.reached]
