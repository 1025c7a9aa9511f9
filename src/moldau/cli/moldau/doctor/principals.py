"""The principal under which a broker knows a client, as far as the client's own settings show.

A broker may change the name: `ssl.principal.mapping.rules` for certificates, and
`sasl.kerberos.principal.to.local.rules` for Kerberos.
"""

from __future__ import annotations

from moldau.base.errors import KafkaError
from moldau.client.wire.security import SecuritySettings
from moldau.security.jaas import option
from moldau.security.principal import ANONYMOUS, USER, KafkaPrincipal
from moldau.security.sasl.mechanism import GSSAPI, OAUTHBEARER


def principal_of(security: SecuritySettings) -> str:
    """Return the principal as ACLs name it; a placeholder if the settings do not contain it."""
    if security.sasl:
        return str(KafkaPrincipal(USER, _login_name(security) or "NAME"))
    return str(KafkaPrincipal(USER, _subject(security) or ANONYMOUS.name))


def _login_name(security: SecuritySettings) -> str | None:
    if security.mechanism == OAUTHBEARER:
        return _token_principal(security)
    name = security.get("sasl.username")
    modules = security.login_modules()
    if security.mechanism == GSSAPI:
        principal = option(modules, "principal") or security.get("sasl.kerberos.principal") or ""
        return principal.partition("@")[0].partition("/")[0] or None
    return option(modules, "username") or name


def _token_principal(security: SecuritySettings) -> str | None:
    from moldau.client.librdkafka.tokens import token_source
    from moldau.security.sasl.mechanism import SaslError

    try:
        return token_source(security).token().principal
    except (SaslError, KafkaError):
        return None


def _subject(security: SecuritySettings) -> str | None:
    """Return the subject of the client's certificate; None without one."""
    if not security.tls:
        return None
    from moldau.security.tls.names import subject_name
    from moldau.security.tls.stores.files import load_key

    store = security.tls_settings().key_store
    return None if store is None else subject_name(load_key(store).chain[0])
