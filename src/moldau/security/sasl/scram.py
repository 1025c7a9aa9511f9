"""SASL SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), both sides, with Kafka's `tokenauth` extension.

    client                                   server
    n,,n=<user>,r=<nonce>[,tokenauth=true]
                                             r=<nonce><server nonce>,s=<salt>,i=<iterations>
    c=biws,r=<both nonces>,p=<proof>
                                             v=<signature>

The server stores keys derived from the password; the client proves the password without sending it. With
`tokenauth`, the user is the id of a delegation token and the password is the base64 of its HMAC.

Security rules: the nonce of the last message equals the server's (CVE-2024-56128), so that no message can be
replayed. An unknown user receives a challenge like any other, with a salt derived from a secret and the name,
and fails at the end: Apache Kafka refuses the first message and so reveals which users exist. Messages are
parsed by splitting, in linear time. Between the messages a server keeps the nonces, of bounded length, and
digests: a client that is not known cannot make it keep a long message. Channel binding is not supported, as
in Kafka.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.security.principal import USER, KafkaPrincipal
from moldau.security.sasl.mechanism import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    SaslError,
    ScramCredential,
    ScramCredentials,
    TokenCache,
    TokenCredential,
)

LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
TOKEN_EXTENSION: Final = "tokenauth"
HASHES: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}

_GS2_HEADER = b"n,,"
_NONCE_BITS = 130
#: A message has a handful of fields; each of more would cost CPU before the client is known.
_MAX_FIELDS = 64
#: Clients send 16 to 32 characters; the server keeps the nonce until the last message.
_MAX_NONCE = 1024
_PRINTABLE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_NAME = re.compile(r"[\x01-\x7f]+")
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x01-\x7f]+")
_ITERATIONS = re.compile(r"[0-9]{1,10}")


def make_credential(mechanism: str, password: str, iterations: int, salt: bytes) -> ScramCredential:
    """Derive what a server stores; takes milliseconds."""
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), iterations, salt)


def credential_of(mechanism: str, salted: bytes, iterations: int, salt: bytes) -> ScramCredential:
    """Derive what a server stores from a salted password, as AlterUserScramCredentials sends it."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def random_salt(randomness: Randomness) -> bytes:
    """Return a salt of the form that Kafka's tools make."""
    return random_text(randomness).encode("ascii")


def random_text(randomness: Randomness) -> str:
    """Return 130 random bits as Kafka writes them: a number in base 36."""
    return _base36(randomness.getrandbits(_NONCE_BITS))


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"


def escape_name(user: str) -> str:
    return user.replace("=", "=3D").replace(",", "=2C")


def unescape_name(name: str) -> str:
    """Return the user of an escaped name; `ValueError` if it is not escaped correctly."""
    user = name.replace("=2C", ",")
    if "=" in user.replace("=3D", ""):
        raise ValueError("the user name is not escaped")
    return user.replace("=3D", "=")


class _Challenge(NamedTuple):
    """What a server keeps between the first and the last message of a client."""

    nonce: str
    credential: ScramCredential
    #: The signatures of the client and of the server, over the first two messages so far.
    client_signature: hmac.HMAC
    server_signature: hmac.HMAC


@dataclass(frozen=True, slots=True)
class _ClientFirst:
    bare: str
    user: str
    authorization_id: str
    nonce: str
    token_authenticated: bool


class ScramServer:
    blocking = False

    def __init__(
        self,
        mechanism: str,
        credentials: ScramCredentials,
        tokens: TokenCache,
        clock: Clock,
        randomness: Randomness,
        decoy_key: bytes,
    ) -> None:
        """`decoy_key` is a secret that the salts of unknown users are derived from."""
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._credentials = credentials
        self._tokens = tokens
        self._clock = clock
        self._randomness = randomness
        self._decoy_key = decoy_key
        self._challenge: _Challenge | None = None
        #: Who logs in if the proof is right; None: an unknown user.
        self._candidate: KafkaPrincipal | None = None
        self._expiry_ms: int | None = None
        self._failed = False
        self._principal: KafkaPrincipal | None = None
        self.session_lifetime_ms: int | None = None

    @property
    def complete(self) -> bool:
        return self._principal is not None

    @property
    def principal(self) -> KafkaPrincipal:
        if self._principal is None:
            raise RuntimeError("the exchange is not complete")
        return self._principal

    def evaluate(self, token: bytes) -> bytes:
        if self.complete or self._failed:
            raise self._error("a message after the end of the exchange")
        challenge, self._failed = self._challenge, True
        answer = self._first(token) if challenge is None else self._final(token, challenge)
        self._failed = False
        return answer

    def _first(self, token: bytes) -> bytes:
        try:
            message = _parse_client_first(token)
        except ValueError as error:
            raise self._error(f"invalid SCRAM client first message: {error}") from None
        if message.authorization_id and message.authorization_id != message.user:
            raise SaslError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        decoy = self._decoy(message.user)
        credential = self._credential(message) or decoy
        if credential.iterations < MIN_ITERATIONS:
            raise self._error(f"the stored credential has fewer than {MIN_ITERATIONS} iterations")
        nonce = message.nonce + random_text(self._randomness)
        answer = f"r={nonce},s={_base64(credential.salt)},i={credential.iterations}"
        signed = f"{message.bare},{answer},".encode("ascii")
        self._challenge = _Challenge(
            nonce,
            credential,
            hmac.new(credential.stored_key, signed, self._hash),
            hmac.new(credential.server_key, signed, self._hash),
        )
        return answer.encode("ascii")

    def _credential(self, message: _ClientFirst) -> ScramCredential | None:
        """Look up the credential of a user or a token, and remember who logs in with it."""
        if message.token_authenticated:
            token: TokenCredential | None = self._tokens.token(self._mechanism, message.user)
            if token is None:
                return None
            self._candidate = token.owner._replace(token_authenticated=True)
            self._expiry_ms = token.expiry_ms
            return token.credential
        credential = self._credentials.scram(self._mechanism, message.user)
        if credential is not None:
            self._candidate = KafkaPrincipal(USER, message.user)
        return credential

    def _decoy(self, user: str) -> ScramCredential:
        """Return the credential shown for an unknown user: the same each time, for no password."""
        seed = hmac.digest(self._decoy_key, f"{self._mechanism} {user}".encode(), "sha256")
        size = hashlib.new(self._hash).digest_size
        salt = _base36(int.from_bytes(seed, "big") >> (256 - _NONCE_BITS)).encode("ascii")
        return ScramCredential(salt, bytes(size), bytes(size), MIN_ITERATIONS)

    def _final(self, token: bytes, challenge: _Challenge) -> bytes:
        try:
            without_proof, client_nonce, proof = _parse_client_final(token)
        except ValueError as error:
            raise self._error(f"invalid SCRAM client final message: {error}") from None
        if not hmac.compare_digest(client_nonce.encode(), challenge.nonce.encode()):
            raise self._error("the nonce of the client's final message is not the server's")
        challenge.client_signature.update(without_proof.encode("ascii"))
        signature = challenge.client_signature.digest()
        if len(proof) != len(signature):
            raise self._error("the proof has the wrong length")
        stored_key = hashlib.new(self._hash, _xor(signature, proof)).digest()
        proven = hmac.compare_digest(stored_key, challenge.credential.stored_key)
        if not proven or self._candidate is None:
            raise self._error("unknown user or wrong password")
        self._finish(self._candidate)
        challenge.server_signature.update(without_proof.encode("ascii"))
        return b"v=" + base64.b64encode(challenge.server_signature.digest())

    def _finish(self, principal: KafkaPrincipal) -> None:
        if self._expiry_ms is not None:
            self.session_lifetime_ms = max(0, self._expiry_ms - self._clock.time_ms())
        self._principal = principal
        self._challenge = None

    def _error(self, reason: str) -> SaslError:
        return SaslError.invalid_credentials(self._mechanism, reason)


class ScramClient:
    """Authenticates with a user and a password, or with the id and the HMAC of a delegation token."""

    #: The derivation of the key takes milliseconds, once.
    blocking = False

    def __init__(
        self, mechanism: str, username: str, password: str, randomness: Randomness, *, token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._username = username
        self._password = password
        self._nonce = random_text(randomness)
        self._extensions = f",{TOKEN_EXTENSION}=true" if token else ""
        self._server_signature: bytes | None = None
        self.complete = False

    def first(self) -> bytes:
        return _GS2_HEADER + self._bare().encode()

    def _bare(self) -> str:
        return f"n={escape_name(self._username)},r={self._nonce}{self._extensions}"

    def evaluate(self, challenge: bytes) -> bytes | None:
        if self.complete:
            raise SaslError(f"{self._mechanism}: the server sent a challenge after the end of the exchange")
        try:
            text = challenge.decode("ascii")
            if self._server_signature is None:
                return self._prove(text)
            self._verify_server(text, self._server_signature)
        except ValueError as error:
            raise SaslError(f"{self._mechanism}: invalid message of the server: {error}") from None
        self.complete = True
        return None

    def _prove(self, text: str) -> bytes:
        nonce, salt, iterations = _parse_server_first(text)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ValueError("the nonce does not begin with the client's")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ValueError(f"{iterations} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS}")
        salted = salted_password(self._mechanism, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        final = f"c={_base64(_GS2_HEADER)},r={nonce}"
        signed = f"{self._bare()},{text},{final}".encode()
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._server_signature = hmac.digest(server_key, signed, self._hash)
        return f"{final},p={_base64(_xor(client_key, signature))}".encode("ascii")

    def _verify_server(self, text: str, expected: bytes) -> None:
        if text.startswith("e="):
            raise SaslError(f"Sasl authentication using {self._mechanism} failed with error: {text[2:100]}")
        if not text.startswith("v="):
            raise ValueError("the signature is missing")
        if not hmac.compare_digest(_unbase64(text[2:].split(",", 1)[0]), expected):
            raise SaslError(
                "Invalid server signature in server final message: the server does not know the password"
            )


def _parse_client_first(token: bytes) -> _ClientFirst:
    text = token.decode("ascii")
    binding, comma, rest = text.partition(",")
    authorization, comma, bare = rest.partition(",")
    if binding != "n" or not comma:
        raise ValueError("no 'n,' header; channel binding is not supported")
    if authorization and not authorization.startswith("a="):
        raise ValueError("the authorization id does not begin with 'a='")
    fields = _fields(bare)
    if len(fields) < 2 or not fields[0].startswith("n=") or not fields[1].startswith("r="):
        raise ValueError("a user and a nonce are expected")
    nonce = fields[1][2:]
    if len(nonce) > _MAX_NONCE:
        raise ValueError(f"the nonce has more than {_MAX_NONCE} characters")
    if not _PRINTABLE.fullmatch(nonce):
        raise ValueError("the nonce is not printable")
    return _ClientFirst(
        bare=bare,
        user=_user(fields[0][2:]),
        authorization_id=_user(authorization[2:]) if authorization else "",
        nonce=nonce,
        token_authenticated=_extensions(fields[2:]).get(TOKEN_EXTENSION, "").lower() == "true",
    )


def _fields(text: str) -> list[str]:
    fields = text.split(",", _MAX_FIELDS)
    if len(fields) > _MAX_FIELDS:
        raise ValueError("too many fields")
    return fields


def _user(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("the user name is empty or not ASCII")
    return unescape_name(name)


def _extensions(fields: list[str]) -> dict[str, str]:
    """Return extensions by name; unknown ones are ignored, as Kafka does."""
    extensions = {}
    for field in fields:
        name, _, value = field.partition("=")
        if not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise ValueError("an extension is not of the form name=value")
        extensions[name] = value
    return extensions


def _parse_client_final(token: bytes) -> tuple[str, str, bytes]:
    """Return the message without its proof, the nonce and the proof."""
    without_proof, comma, proof = token.decode("ascii").rpartition(",p=")
    fields = _fields(without_proof)
    if not comma or len(fields) < 2 or not fields[0].startswith("c=") or not fields[1].startswith("r="):
        raise ValueError("a channel binding, a nonce and a proof are expected")
    _unbase64(fields[0][2:])
    _extensions(fields[2:])
    return without_proof, fields[1][2:], _unbase64(proof)


def _parse_server_first(text: str) -> tuple[str, bytes, int]:
    fields = text.split(",")
    if len(fields) < 3 or [field[:2] for field in fields[:3]] != ["r=", "s=", "i="]:
        raise ValueError("a nonce, a salt and iterations are expected")
    if not _ITERATIONS.fullmatch(fields[2][2:]):
        raise ValueError("the iterations are not a number")
    return fields[0][2:], _unbase64(fields[1][2:]), int(fields[2][2:])


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("invalid base64") from None


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
