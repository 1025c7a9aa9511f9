"""Credentials from JAAS options; what needs a KDC is tested in tests/integration/sasl."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from moldau.config.definition import ConfigError
from moldau.security.sasl.kerberos.settings import client_of, server_of


@pytest.mark.parametrize("make", [client_of, server_of])
def test_without_the_package_the_error_names_the_extra(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install 'moldau\[kerberos\]'"):
        make({"sasl.kerberos.service.name": "kafka"}.get, {}, {})


def test_the_jvm_property_names_the_configuration_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "gssapi", reason="the Python package gssapi is missing: pip install 'moldau[kerberos]'"
    )
    monkeypatch.delenv("KRB5_CONFIG", raising=False)
    configs = {"sasl.kerberos.service.name": "kafka"}
    client_of(configs.get, {"useTicketCache": "true"}, {"java.security.krb5.conf": "/somewhere/krb5.conf"})
    import os

    assert os.environ["KRB5_CONFIG"] == "/somewhere/krb5.conf"
    monkeypatch.delenv("KRB5_CONFIG")
