"""Key and trust stores as Java's keytool makes them: a CA, a broker and a client, as JKS, PKCS12 and PEM.

keytool does not export private keys, so the PEM files are written from its PKCS12 stores. A JVM starts for
each step; `stores` therefore keeps the result in a folder and makes it again before it expires.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

PASSWORD = "store-secret"
BROKER_NAME = "CN=broker,O=Moldau"
CLIENT_NAME = "CN=carol,OU=Clients,O=Moldau"
#: The endings of the store types.
ENDINGS = {"JKS": "jks", "PKCS12": "p12", "PEM": "pem"}
_VALID_DAYS = 30
_KEPT_SECONDS = 20 * 86_400
_SUBJECT_ALTERNATIVE_NAMES = "san=dns:localhost,ip:127.0.0.1"


class Stores:
    """The files of one folder; every store has the password `PASSWORD`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def key(self, owner: str, kind: str) -> Path:
        """Return the key store of `broker` or `client`."""
        return self.folder / f"{owner}.{ENDINGS[kind]}"

    def trust(self, kind: str) -> Path:
        return self.folder / f"trust.{ENDINGS[kind]}"

    def part(self, owner: str, part: str) -> Path:
        """Return a PEM file with the `key` or the `chain` of `broker` or `client`."""
        return self.folder / f"{owner}-{part}.pem"

    def settings(self, owner: str, kind: str, *, key: bool = True) -> dict[str, str]:
        """Return the `ssl.*` settings of Kafka for an owner and a store type."""
        settings = _store_settings("truststore", self.trust(kind), kind)
        if key:
            settings |= _store_settings("keystore", self.key(owner, kind), kind)
            if kind != "PEM":
                settings["ssl.key.password"] = PASSWORD
        return settings


def stores(folder: Path) -> Stores:
    complete = folder / "complete"
    if not complete.exists() or time.time() - complete.stat().st_mtime > _KEPT_SECONDS:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _make(Stores(folder))
        complete.touch()
    return Stores(folder)


def _store_settings(which: str, path: Path, kind: str) -> dict[str, str]:
    settings = {f"ssl.{which}.location": str(path), f"ssl.{which}.type": kind}
    return settings if kind == "PEM" else {**settings, f"ssl.{which}.password": PASSWORD}


def _make(made: Stores) -> None:
    authority, certificate = made.folder / "authority.p12", made.trust("PEM")
    _keytool("-genkeypair", "-alias", "ca", "-dname", "CN=Test CA", "-ext", "bc:c=ca:true", store=authority)
    _keytool("-exportcert", "-rfc", "-alias", "ca", "-file", str(certificate), store=authority)
    for kind in ("JKS", "PKCS12"):
        _import(made.trust(kind), "ca", certificate, kind)
    for owner, name in (("broker", BROKER_NAME), ("client", CLIENT_NAME)):
        _make_owner(made, owner, name, authority, certificate)


def _make_owner(made: Stores, owner: str, name: str, authority: Path, authority_certificate: Path) -> None:
    store, request, certificate = (made.folder / f"{owner}.{end}" for end in ("p12", "csr", "crt"))
    _keytool("-genkeypair", "-alias", owner, "-dname", name, store=store)
    _keytool("-certreq", "-alias", owner, "-file", str(request), store=store)
    signing = ("-gencert", "-rfc", "-alias", "ca", "-ext", _SUBJECT_ALTERNATIVE_NAMES)
    _keytool(*signing, "-infile", str(request), "-outfile", str(certificate), store=authority)
    _import(store, "ca", authority_certificate, "PKCS12")
    _import(store, owner, certificate, "PKCS12")
    _copy_as_jks(store, made.key(owner, "JKS"))
    _write_pem(made, owner, store)


def _import(store: Path, alias: str, certificate: Path, kind: str) -> None:
    words = ("-importcert", "-noprompt", "-alias", alias, "-file", str(certificate))
    _keytool(*words, store=store, kind=kind)


def _copy_as_jks(source: Path, target: Path) -> None:
    words = ("-importkeystore", "-srckeystore", str(source), "-srcstorepass", PASSWORD)
    _run("keytool", *words, "-destkeystore", str(target), "-deststoretype", "JKS", "-deststorepass", PASSWORD)


def _write_pem(made: Stores, owner: str, store: Path) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    key, certificate, others = pkcs12.load_key_and_certificates(store.read_bytes(), PASSWORD.encode())
    assert key is not None and certificate is not None
    key_text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # The store has the CA twice, in the chain and as an entry of its own.
    chain = b"".join(dict.fromkeys(each.public_bytes(Encoding.PEM) for each in [certificate, *others]))
    made.part(owner, "key").write_bytes(key_text)
    made.part(owner, "chain").write_bytes(chain)
    made.key(owner, "PEM").write_bytes(key_text + chain)


def _keytool(*words: str, store: Path, kind: str = "PKCS12") -> None:
    common = ["-keystore", str(store), "-storetype", kind, "-storepass", PASSWORD]
    if words[0] == "-genkeypair":
        common += ["-keyalg", "RSA", "-keysize", "2048", "-validity", str(_VALID_DAYS)]
    if words[0] == "-gencert":
        common += ["-validity", str(_VALID_DAYS)]
    _run("keytool", *words, *common)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(command[:3])}: {done.stdout}{done.stderr}"
