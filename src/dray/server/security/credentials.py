"""What the server keeps in its state directory to know itself and others: authority, keys, admin token, kubeconfig.

    DIR/kubeconfig              admin, ready for kubectl
    DIR/admin-token             the admin's bearer token
    DIR/pki/ca.crt, ca.key      the authority that signs the server's and clients' certificates
    DIR/pki/server.crt, .key    the server's certificate, renewed when it is due
    DIR/pki/service-account.key the key that signs service-account tokens
    DIR/pki/kubelet-client.crt, .key    how the server shows itself to kubelets, made anew when it is due

Everything missing is made; nothing that is there is replaced, but for the server's certificate and the kubeconfig.
"""

from __future__ import annotations

import datetime as dt
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path

from dray.server.security.certificates import (
    CERTIFICATE_LIFETIME,
    RENEW_BEFORE_EXPIRY,
    Authority,
    CertificateError,
    KeyPair,
    create_private_key,
    must_renew,
    read_private_key,
)
from dray.server.security.identity import KUBELET_CLIENT
from dray.server.security.kubeconfig import ClusterAddress, kubeconfig
from dray.server.security.state_directory import StateDirectory, StateDirectoryError

ADMIN_USER = "admin"
ADMIN_TOKEN = "admin-token"
KUBECONFIG = "kubeconfig"

_AUTHORITY = ("pki/ca.crt", "pki/ca.key")
_SERVER = ("pki/server.crt", "pki/server.key")
_KUBELET_CLIENT = ("pki/kubelet-client.crt", "pki/kubelet-client.key")
_SIGNING_KEY = "pki/service-account.key"
_MIN_TOKEN_LENGTH = 16


class Credentials:
    """The server's own secrets. The caller holds the directory's lock."""

    def __init__(self, directory: StateDirectory, names: Iterable[str], now: dt.datetime) -> None:
        """Read the secrets and make those that are missing. Raises StateDirectoryError.

        `names` are the names and addresses that the server's certificate stands for.
        """
        self.directory = directory
        self._kubelet_client_until = now
        self._names = tuple(names)
        self.authority = self._load_authority(now)
        self.signing_key = self._load_signing_key()
        self.admin_token = self._load_admin_token()
        self.renew_server_certificate(now)

    def renew_server_certificate(self, now: dt.datetime) -> bool:
        """Replace the server's certificate if it is due. True if it was; load it into the TLS context then."""
        certificate, key = (self.directory.read(name) for name in _SERVER)
        pair = KeyPair(certificate or b"", key or b"")
        try:
            if not must_renew(pair, self.authority, self._names, now):
                return False
            pair = self.authority.issue_server_certificate(self._names, now)
        except CertificateError as error:
            raise StateDirectoryError(f"cannot make the server's certificate: {error}") from error
        self.directory.write(_SERVER[1], pair.key)
        self.directory.write(_SERVER[0], pair.certificate)
        return True

    def kubelet_client_files(self, now: dt.datetime) -> tuple[Path, Path]:
        """Certificate and key with which the server goes to kubelets. Raises StateDirectoryError."""
        if now >= self._kubelet_client_until:
            try:
                pair = self.authority.issue_client_certificate(KUBELET_CLIENT, (), now)
            except CertificateError as error:
                raise StateDirectoryError(f"cannot make the server's certificate for kubelets: {error}") from error
            self.directory.write(_KUBELET_CLIENT[1], pair.key)
            self.directory.write(_KUBELET_CLIENT[0], pair.certificate)
            self._kubelet_client_until = now + CERTIFICATE_LIFETIME - RENEW_BEFORE_EXPIRY
        return self.directory.file(_KUBELET_CLIENT[0]), self.directory.file(_KUBELET_CLIENT[1])

    def tls_context(self) -> ssl.SSLContext:
        """TLS for the server: 1.2 and later; a client certificate is optional, but a bad one ends the handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self.load_server_certificate(context)
        context.load_verify_locations(cadata=self.authority.pair.certificate.decode("ascii"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def load_server_certificate(self, context: ssl.SSLContext) -> None:
        """Put the current certificate into a context; connections made from then on see it."""
        certificate, key = (self.directory.file(name) for name in _SERVER)
        context.load_cert_chain(certificate, key)

    def write_admin_kubeconfig(self, url: str) -> None:
        """Write `DIR/kubeconfig` for a server at `url`."""
        cluster = ClusterAddress(url, self.authority.pair.certificate if url.startswith("https:") else None)
        self.directory.write(KUBECONFIG, kubeconfig(cluster, ADMIN_USER, self.admin_token))

    def _load_authority(self, now: dt.datetime) -> Authority:
        certificate, key = (self.directory.read(name) for name in _AUTHORITY)
        # A key without certificate is what a crash between the two writes leaves: nobody has seen it yet.
        if certificate is None:
            return self._create_authority(now)
        path = self.directory.file(_AUTHORITY[0])
        if key is None:
            missing = self.directory.file(_AUTHORITY[1])
            raise StateDirectoryError(f"{path} is there, but its key {missing} is not. Restore it, or remove both.")
        try:
            authority = Authority(KeyPair(certificate, key))
        except CertificateError as error:
            raise StateDirectoryError(
                f"the certificate authority in {path.parent} is unusable: {error}. Restore ca.crt and ca.key from a "
                "backup, or remove both: clients then need the new kubeconfig."
            ) from error
        if now >= authority.not_after:
            raise StateDirectoryError(
                f"the certificate authority {path} has expired on {authority.not_after:%Y-%m-%d}. Remove ca.crt and "
                "ca.key for a new one: clients then need the new kubeconfig."
            )
        return authority

    def _create_authority(self, now: dt.datetime) -> Authority:
        authority = Authority.create(now)
        self.directory.write(_AUTHORITY[1], authority.pair.key)
        self.directory.write(_AUTHORITY[0], authority.pair.certificate)
        return authority

    def _load_signing_key(self) -> bytes:
        key = self.directory.read(_SIGNING_KEY)
        if key is None:
            key = create_private_key()
            self.directory.write(_SIGNING_KEY, key)
        try:
            read_private_key(key)
        except CertificateError as error:
            path = self.directory.file(_SIGNING_KEY)
            raise StateDirectoryError(
                f"{path} is unusable: {error}. Restore it, or remove it: service-account tokens are then issued anew."
            ) from error
        return key

    def _load_admin_token(self) -> str:
        data = self.directory.read(ADMIN_TOKEN)
        if data is None:
            data = secrets.token_hex(32).encode()
            self.directory.write(ADMIN_TOKEN, data)
        token = data.strip()
        if len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or any(byte <= 0x20 for byte in token):
            path = self.directory.file(ADMIN_TOKEN)
            raise StateDirectoryError(
                f"{path} does not hold a token of at least {_MIN_TOKEN_LENGTH} printable characters. "
                "Remove it, and a new one is made."
            )
        return token.decode("ascii")
