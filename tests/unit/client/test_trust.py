"""Certificates of clusters are good on every version of Python, also those that lack extensions."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dray.client.trust import trusting
from webhook_certificates import write_certificate


async def _greet(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """A handshake with a server that shows a certificate."""
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(cert, key)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=served)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
        assert await reader.read() == b""
        writer.close()


def _signed_by_somebody(directory: Path) -> tuple[str, Path, Path]:
    """An authority, a certificate for localhost that it signed, neither with identifiers of keys, and its key."""
    now = dt.datetime.now(dt.UTC)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def begin(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        built = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("authority"))
        built = built.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return built.not_valid_before(now - dt.timedelta(hours=1)).not_valid_after(now + dt.timedelta(days=1))

    above, below = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    authority = begin("authority", above).add_extension(is_authority, critical=True).sign(above, hashes.SHA256())
    localhost = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = begin("localhost", below).add_extension(localhost, critical=False).sign(above, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    cert, key = directory / "cert.pem", directory / "key.pem"
    cert.write_bytes(signed.public_bytes(pem))
    key.write_bytes(below.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return authority.public_bytes(pem).decode(), cert, key


async def test_a_certificate_without_key_identifiers_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Python 3.13 the default refuses it; here it does on every version."""
    authority, cert, key = _signed_by_somebody(tmp_path)
    make = ssl.create_default_context

    def strict(**options: str | None) -> ssl.SSLContext:
        context = make(cadata=options["cadata"])
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    with pytest.raises(ssl.SSLCertVerificationError):
        await _greet(strict(cadata=authority), cert, key)
    await _greet(trusting(authority), cert, key)


async def test_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    cert, key = write_certificate(tmp_path)
    other, _ = write_certificate(tmp_path / "other")
    for context in (trusting(other.read_text()), trusting()):
        with pytest.raises(ssl.SSLCertVerificationError):
            await _greet(context, cert, key)


@pytest.mark.parametrize("text", ["", "\n", "hello"])
def test_a_file_without_certificates_does_not_mean_the_authorities_of_the_system(text: str) -> None:
    with pytest.raises((ValueError, ssl.SSLError)):
        trusting(text)
