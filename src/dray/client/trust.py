"""Whom TLS connections trust: the authorities that were given, or else those of the system."""

from __future__ import annotations

import contextlib
import ssl
from datetime import UTC, datetime


def trusting(authorities: str | None = None) -> ssl.SSLContext:
    """For clients; `authorities` are certificates in PEM. Raises ssl.SSLError or ValueError if they are none.

    Certificates that lack some extensions are good, as they are for every client of Kubernetes, whichever version of
    Python this is: newer ones refuse them unless told, and clusters have them.
    """
    if authorities is not None and not authorities.strip():
        raise ValueError("there is no certificate in it")  # not: whomever the system trusts
    context = ssl.create_default_context(cadata=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def tell_certificate(certificate: bytes) -> str:
    """Why a server may not take the certificate of a client, in brackets: that it has expired, if so."""
    from cryptography import x509

    with contextlib.suppress(ValueError):
        end = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
        if end < datetime.now(UTC):
            return f" (the client certificate has expired at {end:%Y-%m-%dT%H:%M:%SZ})"
    return " (it may not trust the client certificate)"
