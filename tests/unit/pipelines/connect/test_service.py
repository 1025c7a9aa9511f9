"""What workers of both kinds need to start."""

from __future__ import annotations

from moldau.http.settings import HttpSettings
from moldau.pipelines.connect.service import listener_properties


def test_the_rest_api_has_tls_settings_of_its_own() -> None:
    shared = {"ssl.keystore.location": "clients.pem", "ssl.client.auth": "none", "group.id": "g"}
    assert listener_properties(shared) == shared
    own = {"listeners.https.ssl.keystore.location": "rest.pem", "listeners.https.ssl.client.auth": "required"}
    found = listener_properties({**shared, "ssl.truststore.location": "clients.pem", **own})
    assert found == {
        "group.id": "g",
        "ssl.keystore.location": "rest.pem",
        "ssl.client.auth": "required",
    }
    settings = HttpSettings.from_properties({"listeners": "https://localhost:0", **found}, default_port=0)
    assert settings.tls_property("ssl.client.auth") == "required"
