"""A client of SCRAM that can be made to send wrong messages (RFC 5802), independent of the product's."""

from __future__ import annotations

import base64
import hashlib
import hmac

from tests.harness.security.secured_node import USERS

#: The hash functions of the mechanisms.
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class Scram:
    def __init__(self, user: str, password: str | None = None, hash_name: str = "sha256") -> None:
        self._user = user.replace("=", "=3D").replace(",", "=2C")
        self._password = USERS.get(user, "") if password is None else password
        self._hash = hash_name
        self._bare = ""

    def first(
        self, *, header: str = "n,,", extensions: str = "", nonce: str = "fyko+d2lbbFgONRv9qkxdawL"
    ) -> bytes:
        self._bare = f"n={self._user},r={nonce}{extensions}"
        return (header + self._bare).encode()

    def final(
        self, server_first: bytes, *, channel: str = "biws", nonce_suffix: str = "", proof: str = ""
    ) -> bytes:
        fields = dict(each.partition("=")[::2] for each in server_first.decode().split(","))
        bare = f"c={channel},r={fields.get('r', '')}{nonce_suffix}"
        salt, iterations = base64.b64decode(fields.get("s", "")), int(fields.get("i", "4096"))
        message = f"{self._bare},{server_first.decode()},{bare}".encode()
        return f"{bare},p={proof or self._proof(salt, iterations, message)}".encode()

    def _proof(self, salt: bytes, iterations: int, message: bytes) -> str:
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), message, self._hash)
        return base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
