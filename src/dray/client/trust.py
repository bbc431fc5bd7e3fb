"""Whom TLS connections trust: the authorities that were given, or else those of the system."""

from __future__ import annotations

import ssl


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
