from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.local.ports import ReservedPorts

HOST = "127.0.0.1"
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
linux = pytest.mark.skipif(sys.platform != "linux", reason="ports are held on Linux only")


@pytest.fixture
def ports() -> ReservedPorts:
    return ReservedPorts(HOST)


@linux
def test_chosen_port_is_below_the_ephemeral_range(ports: ReservedPorts) -> None:
    first_ephemeral = int(EPHEMERAL_RANGE.read_text().split()[0])

    assert all(1024 < ports.choose() < first_ephemeral for _ in range(50))
    ports.release()


def test_chosen_ports_are_distinct(ports: ReservedPorts) -> None:
    assert len({ports.choose() for _ in range(100)}) == 100
    ports.release()


@linux
def test_node_listens_on_a_reserved_port(ports: ReservedPorts) -> None:
    with socket.create_server((HOST, ports.choose())) as listener:
        assert listener.getsockname()[1] >= 1024
    ports.release()


@linux
def test_reserved_port_is_not_chosen_by_another_process(ports: ReservedPorts) -> None:
    port = ports.choose()
    code = (
        "import sys\nfrom moldau.local.ports import ReservedPorts\n"
        f"sys.exit(ReservedPorts('{HOST}')._reserve_all([{port}]))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    ports.release()


def test_released_port_is_free_again(ports: ReservedPorts) -> None:
    port = ports.choose()
    ports.release()

    assert ReservedPorts(HOST)._reserve_all([port])


@linux
def test_port_is_chosen_with_all_its_offsets(ports: ReservedPorts) -> None:
    first = ports.choose((0, 1, 10_000))

    assert not any(ReservedPorts(HOST)._reserve_all([first + offset]) for offset in (0, 1, 10_000))
    ports.release()


def test_port_with_a_listener_is_not_held(ports: ReservedPorts) -> None:
    with socket.create_server((HOST, 0)) as listener, pytest.raises(OSError, match="in use"):
        ports.hold(listener.getsockname()[1])
