"""Tokens of OAUTHBEARER for librdkafka."""

from __future__ import annotations

import time

from moldau.client.librdkafka.security import translate_security
from moldau.client.librdkafka.tokens import token_callback
from moldau.client.wire.security import SecuritySettings

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PROPERTIES = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="alice" '
    'unsecuredLoginExtension_team="blue";',
}


def test_callback_returns_token_expiry_principal_and_extensions() -> None:
    token, expires_at, principal, extensions = token_callback(SecuritySettings.from_properties(PROPERTIES))(
        ""
    )
    assert (token.count("."), principal, extensions) == (2, "alice", {"team": "blue"})
    assert expires_at > time.time()


def test_javas_properties_become_a_callback() -> None:
    settings = translate_security(PROPERTIES)
    assert set(settings) == {"security.protocol", "sasl.mechanism", "oauth_cb"}


def test_librdkafka_gets_tokens_itself_if_its_own_names_are_used() -> None:
    own = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "me"}
    settings = translate_security({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **own})
    assert "oauth_cb" not in settings
    assert own.items() <= settings.items()
