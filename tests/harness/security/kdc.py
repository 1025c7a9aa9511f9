"""A real MIT Kerberos KDC with a realm of its own, in a folder and on a port of the test."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from moldau.local.ports import ReservedPorts
from tests.harness.waiting import eventually

REALM = "MOLDAU.TEST"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")

_KRB5_CONF = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
    forwardable = true
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
"""
_KDC_CONF = """\
[kdcdefaults]
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {realm} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        acl_file = {folder}/kadm5.acl
        max_life = 10h
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""


def require_kerberos() -> None:
    """Skip the test with a sentence if the KDC or the package is missing."""
    missing = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if missing:
        pytest.skip(f"Kerberos programs are missing ({', '.join(missing)}): install krb5-kdc and krb5-user")
    if importlib.util.find_spec("gssapi") is None:
        pytest.skip("the Python package gssapi is missing: pip install 'moldau[kerberos]'")


class Kdc:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = ReservedPorts("127.0.0.1")
        self._port = self._ports.choose()
        values = {"realm": REALM, "port": self._port, "folder": folder}
        (folder / "krb5.conf").write_text(_KRB5_CONF.format(**values))
        (folder / "kdc.conf").write_text(_KDC_CONF.format(**values))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make a process use this realm; the ticket cache is empty at first."""
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'tickets'}",
            "KRB5RCACHENAME": f"dfl:{self.folder}",
        }

    def start(self) -> Kdc:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-key")
        with (self.folder / "kdc.out").open("wb") as output:
            self._process = subprocess.Popen(
                [self._program("krb5kdc"), "-n", "-r", REALM],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=output,
            )
        eventually(self._answers, timeout=30, what="the KDC listens")
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
        self._ports.release()

    def add(self, *principals: str) -> Path:
        """Create principals with random keys; return a key table with all of them."""
        keytab = self.folder / f"{principals[0].replace('/', '-')}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {principal}")
        return keytab

    def kinit(self, principal: str, keytab: Path, *options: str) -> None:
        """Put a ticket into the cache."""
        self._run("kinit", *options, "-k", "-t", str(keytab), principal)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._program(program), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=_PATH)
        assert found is not None
        return found
