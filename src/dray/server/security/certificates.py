"""X.509 for the API server: an authority, the server's certificate and client certificates. Pure: bytes in, bytes out.

Keys are ECDSA P-256. A client certificate says who its holder is as in Kubernetes: common name → user, organisations
→ groups.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dray.server.security import certificate_signers

AUTHORITY_LIFETIME = dt.timedelta(days=3650)
CERTIFICATE_LIFETIME = dt.timedelta(days=365)
RENEW_BEFORE_EXPIRY = dt.timedelta(days=30)
# Clocks of clients and of a restarted server may be a little behind ours.
BACKDATED = dt.timedelta(hours=1)
BACKDATED_REQUEST = dt.timedelta(minutes=5)
"""Less than the shortest lifetime that may be asked for."""

SERVICE_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")

_Usage = tuple[x509.ObjectIdentifier, ...]


class CertificateError(ValueError):
    """A certificate or key cannot be read, does not fit, or cannot be made as asked for."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority that signs server and client certificates."""

    def __init__(self, pair: KeyPair) -> None:
        """Read an authority. Raises CertificateError if it is not one, or its key is not that of its certificate."""
        self.pair = pair
        self._certificate = read_certificate(pair.certificate)
        self._key = read_private_key(pair.key)
        if self._certificate.public_key() != self._key.public_key():
            raise CertificateError("the key is not the one of the certificate")
        if not _may_sign(self._certificate):
            raise CertificateError("the certificate is not one of an authority")

    @classmethod
    def create(cls, now: dt.datetime, common_name: str = "dray") -> Authority:
        """A new authority with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = _builder(name, name, key.public_key(), now - BACKDATED, now + AUTHORITY_LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        return cls(KeyPair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key)))

    @property
    def not_after(self) -> dt.datetime:
        """When the authority ends, and with it all it has signed."""
        return self._certificate.not_valid_after_utc

    def issue_server_certificate(self, names: Iterable[str], now: dt.datetime) -> KeyPair:
        """A certificate for a server reachable under these DNS names and IP addresses."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        return self._issue(subject, (ExtendedKeyUsageOID.SERVER_AUTH,), now, CERTIFICATE_LIFETIME, alternatives)

    def issue_client_certificate(
        self, user: str, groups: Iterable[str], now: dt.datetime, lifetime: dt.timedelta = CERTIFICATE_LIFETIME
    ) -> KeyPair:
        """A certificate whose holder is `user` in `groups`. Raises CertificateError for names X.509 cannot hold."""
        groups = tuple(groups)
        if not user or "" in groups:
            raise CertificateError("a client certificate needs a user name, and no group may be empty")
        try:
            organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
            subject = x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        except ValueError as error:
            raise CertificateError(f"user {user!r} or a group of it cannot stand in a certificate: {error}") from error
        return self._issue(subject, (ExtendedKeyUsageOID.CLIENT_AUTH,), now, lifetime, None)

    def sign_request(
        self,
        request: x509.CertificateSigningRequest,
        usages: Iterable[str],
        now: dt.datetime,
        lifetime: dt.timedelta,
    ) -> bytes:
        """The certificate that a request asks for, PEM: its subject, its names, its key. Raises CertificateError."""
        usages = tuple(usages)
        end = min(now + lifetime, self.not_after)
        start = max(now - BACKDATED_REQUEST, self._certificate.not_valid_before_utc)
        if end <= start:
            raise CertificateError(f"the certificate authority has expired on {self.not_after:%Y-%m-%d}")
        key = request.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
            raise CertificateError("the key is neither RSA nor ECDSA nor Ed25519")
        builder = _builder(request.subject, self._certificate.subject, key, start, end)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        usage = _key_usage(signs_certificates=False, enciphers=certificate_signers.ENCIPHERMENT in usages)
        builder = builder.add_extension(usage, critical=True)
        purposes = certificate_signers.purposes(usages)
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer_id, critical=False)
        names = certificate_signers.alternative_names(request)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _pem(builder.sign(self._key, hashes.SHA256()))

    def has_signed(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate is from this authority."""
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _issue(
        self,
        subject: x509.Name,
        usage: _Usage,
        now: dt.datetime,
        lifetime: dt.timedelta,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        end = min(now + lifetime, self.not_after)
        start = max(now - BACKDATED, self._certificate.not_valid_before_utc)
        if end <= start:
            raise CertificateError(f"the certificate authority has expired on {self.not_after:%Y-%m-%d}")
        builder = _builder(subject, self._certificate.subject, key.public_key(), start, end)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer_id, critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return KeyPair(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def server_names(given: Iterable[str]) -> tuple[str, ...]:
    """All names and addresses that clients may use: those of this machine and of the cluster's own Service, and what
    is given; an address that stands for all adds none."""
    names = [*LOOPBACK_ADDRESSES, *SERVICE_NAMES, *given]
    return tuple(dict.fromkeys(name.strip("[]") for name in names if name and not _is_wildcard(name)))


def must_renew(pair: KeyPair, authority: Authority, names: Iterable[str], now: dt.datetime) -> bool:
    """Whether a server certificate is to be replaced.

    It is if it is not from this authority, not valid now, expires soon (unless the authority itself does), does not
    stand for exactly these names, or does not fit its key.
    """
    try:
        certificate = read_certificate(pair.certificate)
        key = read_private_key(pair.key)
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (CertificateError, x509.ExtensionNotFound):
        return True
    end = certificate.not_valid_after_utc
    expires_soon = now + RENEW_BEFORE_EXPIRY >= end and end < authority.not_after
    return (
        expires_soon
        or not certificate.not_valid_before_utc <= now < end
        or set(alternatives) != {_general_name(name) for name in names}
        or certificate.public_key() != key.public_key()
        or not authority.has_signed(certificate)
    )


def read_certificate(pem: bytes) -> x509.Certificate:
    """A PEM certificate. Raises CertificateError."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError("not a PEM certificate") from error


def read_private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """A PEM key of an elliptic curve. Raises CertificateError."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError("not an unencrypted PEM private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("not a key of an elliptic curve")
    return key


def create_private_key() -> bytes:
    """A new ECDSA P-256 key, PEM."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def _is_wildcard(name: str) -> bool:
    return name.strip("[]") in ("0.0.0.0", "::")


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name)
    except ValueError as error:
        raise CertificateError(f"{name!r} is neither an IP address nor a DNS name") from error


_PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


def _builder(
    subject: x509.Name, issuer: x509.Name, key: _PublicKey, start: dt.datetime, end: dt.datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer_name=issuer, subject_name=subject, public_key=key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _key_usage(*, signs_certificates: bool, enciphers: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=enciphers,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
