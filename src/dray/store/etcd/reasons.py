"""Why etcd cannot be reached, in words that say what to do. Pure.

gRPC says it in English alone, at length; there is nothing else to tell reasons apart by.
"""

from __future__ import annotations

from typing import Final

from dray.store.etcd.address import EtcdAddress

_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
_OTHER_NAME: Final = ("Peer name", "Hostname Verification Check failed")
_UNKNOWN_CLIENT: Final = ("ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE", "ALERT_UNKNOWN_CA", "ALERT_HANDSHAKE_FAILURE")
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "Handshake read failed")
_CLOSED: Final = ("Socket closed", "GOAWAY", "Connection reset")
_NO_HOST: Final = ("lookup failed", "Domain name not found", "DNS resolution failed", "Name or service not known")
_NOBODY: Final = "Connection refused"


def unreachable(address: EtcdAddress, details: str) -> str:
    """Why, and what to do, as one or two sentences."""
    return f"cannot reach etcd at {address}: {_reason(address, details)}."


def _reason(address: EtcdAddress, details: str) -> str:
    def says(*words: str) -> bool:
        return any(word in details for word in words)

    if address.is_encrypted:
        if says(_UNTRUSTED):
            trusted = f"--etcd-cacert {address.authority}" if address.authority else "an authority of this system"
            return f"its certificate is not signed by {trusted}. Give the authority that signed it as --etcd-cacert"
        if says(*_OTHER_NAME):
            return "its certificate is for another name. Give the name or address that is in it in --store"
        if says(*_UNKNOWN_CLIENT):
            given = (
                f"does not accept --etcd-cert {address.certificate}" if address.certificate else "wants a certificate"
            )
            return f"it {given}. Give one that etcd trusts (its --trusted-ca-file) as --etcd-cert and --etcd-key"
        if says(*_NOT_TLS):
            return "it does not speak TLS there. Give http:// in --store, or the port that has TLS"
    elif says(*_CLOSED):
        return "it ends the connection. If it has TLS, give https:// in --store, with --etcd-cacert"
    if says(_NOBODY):
        return "nobody listens there. Start it, or give another --store"
    if says(*_NO_HOST):
        return "there is no host of that name. Give another --store"
    files = ", --etcd-cacert or --etcd-cert" if address.is_encrypted else ""
    return f"{details.rstrip('.')}. Start it, or give another --store{files}"
