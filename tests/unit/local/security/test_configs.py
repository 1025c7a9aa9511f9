from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.broker.config import BrokerConfig
from moldau.local.plan import single_node_properties
from moldau.local.security.configs import SecurityConfigs
from moldau.local.security.files import SecurityFiles, exists
from moldau.local.security.modes import SecurityMode
from moldau.security.jaas import parse_entries


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> SecurityFiles:
    return SecurityFiles.prepare(tmp_path_factory.mktemp("data"), ("127.0.0.1",))


MODES = [mode for mode in SecurityMode if mode is not SecurityMode.PLAINTEXT]


@pytest.mark.parametrize("mode", MODES)
def test_properties_of_nodes_are_valid(mode: SecurityMode, files: SecurityFiles) -> None:
    plain = single_node_properties("127.0.0.1", 9092, 9093, "/data")
    config = BrokerConfig(SecurityConfigs(mode, files).node_properties(plain))
    assert config.protocol_map[mode.protocol] == mode.protocol
    assert config.inter_broker_listener_name == mode.protocol
    assert config.protocol_map["CONTROLLER"] == "SSL"
    for name, text in config.texts.items():
        if name.endswith("jaas.config"):
            assert parse_entries(text)


@pytest.mark.parametrize("mode", MODES)
def test_passwords_are_not_shown(mode: SecurityMode, files: SecurityFiles) -> None:
    assert files.password not in repr(SecurityConfigs(mode, files))
    assert files.broker_password not in repr(SecurityConfigs(mode, files))


def test_files_are_created_once(files: SecurityFiles, tmp_path: Path) -> None:
    assert SecurityFiles.prepare(files.folder.parent, ()) == files
    assert not exists(tmp_path)


def test_names_of_modes() -> None:
    assert SecurityMode.parse("SASL_SSL") is SecurityMode.SCRAM_SHA_512
    assert SecurityMode.parse("mtls") is SecurityMode.MTLS
    assert SecurityMode.parse("SASL_SSL/PLAIN") is SecurityMode.PLAIN
    with pytest.raises(ValueError, match="mTLS"):
        SecurityMode.parse("TLS")
