from __future__ import annotations

from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.settings import RegistrySettings

URL = {"schema.registry.url": "http://a:8081"}


def test_urls_and_credentials_in_a_url() -> None:
    settings = RegistrySettings.of("http://al%40ice:s3cret%3A@a:8081/, https://b/path/")
    assert settings.urls == ("http://a:8081", "https://b/path")
    assert settings.user_info == ("al@ice", "s3cret:")
    assert "s3cret" not in repr(settings)


def test_names_with_and_without_the_prefix_of_a_producer() -> None:
    with_prefix = {"schema.registry.basic.auth.user.info": "u:p", "schema.registry.ssl.ca.location": "/ca"}
    without = {"basic.auth.user.info": "u:p", "ssl.ca.location": "/ca"}
    for given in (with_prefix, without):
        settings = RegistrySettings.of(URL | given)
        assert settings.user_info == ("u", "p")
        assert settings.ssl == {"ssl.ca.location": "/ca"}


def test_tls_of_the_registry_differs_from_that_of_the_brokers() -> None:
    given = URL | {"ssl.ca.location": "/brokers", "schema.registry.ssl.ca.location": "/registry"}
    assert RegistrySettings.of(given).ssl == {"ssl.ca.location": "/registry"}


def test_credentials_of_sasl_are_inherited() -> None:
    given = {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "u", "sasl.password": "p"}
    assert RegistrySettings.of(URL | given).user_info == ("u", "p")


def test_headers_and_proxy_of_java_clients() -> None:
    settings = RegistrySettings.of(
        URL | {"request.header.X-Team": "shop", "proxy.host": "p", "proxy.port": 3128}
    )
    assert settings.headers == {"X-Team": "shop"}
    assert settings.proxy == "http://p:3128"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "schema.registry.url is missing"),
        ({"schema.registry.url": "localhost:8081"}, "use http:// or https://"),
        (URL | {"basic.auth.user.info": "nobody"}, "must be user:password"),
        (URL | {"basic.auth.credentials.source": "FILE"}, "use one of URL, USER_INFO, SASL_INHERIT"),
        (URL | {"basic.auth.credentials.source": "SASL_INHERIT"}, "needs sasl.username"),
        (URL | {"bearer.auth.credentials.source": "OAUTHBEARER"}, "needs bearer.auth.issuer.endpoint.url"),
        (URL | {"basic.auth.user.info": "u:p", "bearer.auth.token": "t"}, "exclude each other"),
    ],
)
def test_invalid_settings(given: dict[str, Any], message: str) -> None:
    with pytest.raises(KafkaError) as refused:
        RegistrySettings.of(given)
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    assert message in str(refused.value)
