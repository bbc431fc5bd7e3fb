"""The node's certificate: made by itself, known to the API server by its fingerprint in the Node object.

`python -m dray.node.endpoints.serving_certificate ROOT NODE ADDRESS` makes it: in a process of its own, because what
that takes to load would stay in the agent for months.
"""

from __future__ import annotations

import hashlib
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from dray.files import Directory

DIRECTORY: Final = "pki"
CERTIFICATE: Final = "serving.crt"
KEY: Final = "serving.key"
LIFETIME_DAYS: Final = 365
RENEW_DAYS: Final = 300
MAX_BYTES: Final = 64 * 1024
SECONDS: Final = 60.0


class CertificateMissing(Exception):
    """There is no certificate, and none can be made. The message says why."""


class Serving:
    """The certificate and key that a node serves with, and how it is told from others."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises CertificateMissing if they cannot be used."""
        self.certificate = certificate
        self.key = key
        try:
            encoded = certificate.read_bytes()[:MAX_BYTES].decode("ascii", "replace")
            self.fingerprint = fingerprint_of(ssl.PEM_cert_to_DER_cert(_first(encoded)))
        except (OSError, ValueError) as error:
            raise CertificateMissing(f"cannot read certificate {certificate}: {error}") from None

    def context(self, authority: bytes | None) -> ssl.SSLContext:
        """TLS with this certificate, in which clients may show theirs, if `authority` signed it. Raises OSError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if authority is not None:
            context.load_verify_locations(cadata=authority.decode("ascii", "replace"))
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def fingerprint_of(certificate: bytes) -> str:
    """What tells a certificate (DER) from all others."""
    return f"sha256:{hashlib.sha256(certificate).hexdigest()}"


def ensure(root: Path, node: str, address: str) -> Serving:
    """The node's own certificate, made anew if it is missing or old. Raises CertificateMissing."""
    try:
        with Directory.open(root) as directory, directory.child(DIRECTORY, create=0o700) as found:
            status = found.status(CERTIFICATE)
            old = status is None or time.time() - status.st_mtime > RENEW_DAYS * 86400
            if old or found.status(KEY) is None:
                _make_elsewhere(root, node, address)
    except OSError as error:
        raise CertificateMissing(f"cannot use {root / DIRECTORY}: {error.strerror or error}") from None
    return Serving(root / DIRECTORY / CERTIFICATE, root / DIRECTORY / KEY)


def _make_elsewhere(root: Path, node: str, address: str) -> None:
    command = [sys.executable, "-m", "dray.node.endpoints.serving_certificate", str(root), node, address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CertificateMissing("making the node's certificate took too long") from None
    if done.returncode:
        raise CertificateMissing(f"cannot make the node's certificate: {done.stderr.strip()[-300:]}")


def _first(encoded: str) -> str:
    """The first certificate of a file."""
    end = "-----END CERTIFICATE-----"
    begin = encoded.find("-----BEGIN CERTIFICATE-----")
    return encoded[max(begin, 0) : encoded.find(end) + len(end)] + "\n"


def make(root: Path, node: str, address: str) -> None:
    """Makes the certificate and its key. Raises OSError."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"[:64]),
        ]
    )
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(node)]
    names.append(x509.IPAddress(ipaddress.ip_address(address)))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=LIFETIME_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with Directory.open(root) as directory, directory.child(DIRECTORY, create=0o700) as found:
        found.replace(KEY, private, 0o600)
        found.replace(CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
