"""What may be asked for in a CertificateSigningRequest, and what may be written to it later."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from builders import typed
from dray.api.field import FieldError
from dray.api.generated.certificates import CertificateSigningRequest
from dray.api.times import Time
from dray.validation import Context
from dray.validation.certificate_signing_request import RULES

RULE = RULES["CertificateSigningRequest"]
CONTEXT = Context(now=Time("2026-01-01T00:00:00Z"))
MADE = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
PEM = MADE.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
BAD_CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def request(conditions: tuple[tuple[str, str], ...] = (), certificate: bytes = b"", **spec: Any) -> Any:
    asked = {"request": coded(PEM), "signerName": "example.com/s", "usages": ["client auth"], **spec}
    status = {"certificate": coded(certificate), "conditions": [{"type": t, "status": s} for t, s in conditions]}
    document = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "A b"},
    }
    return typed({**document, "spec": asked, "status": status}, CertificateSigningRequest)


def problems_of(after: Any, before: Any) -> str:
    errors: list[FieldError] = []
    RULE.check_status(errors, after, before, CONTEXT)
    return " ".join(map(str, errors))


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({}, []),
        ({"request": coded(b"?")}, ["spec.request: Invalid value"]),
        ({"request": coded(BAD_CERTIFICATE)}, ["spec.request: Invalid value"]),
        ({"request": coded(PEM.replace(b"M", b"N", 1))}, ["spec.request: Invalid value"]),
        ({"usages": []}, ["spec.usages: Required value"]),
        ({"usages": ["x", "any", "any"]}, ["spec.usages[0]: Unsupported value", "spec.usages[2]: Duplicate value"]),
        ({"signerName": ""}, ["spec.signerName: Required value"]),
        ({"signerName": "example.com"}, ["spec.signerName: Invalid value"]),
        ({"signerName": "com/x"}, ["spec.signerName: Invalid value"]),
        ({"signerName": "exa_mple.com/X"}, ["spec.signerName: Invalid value"] * 2),
        ({"signerName": "kubernetes.io/legacy-unknown"}, ["spec.signerName: Invalid value"]),
        ({"expirationSeconds": 599}, ["spec.expirationSeconds: Invalid value"]),
        ({"expirationSeconds": 600}, []),
    ],
)
def test_what_is_asked_for(spec: dict[str, Any], problems: list[str]) -> None:
    found = [str(error) for error in RULE.validate_create(request(**spec), CONTEXT)]
    assert [text[: text.index(" value") + 6] for text in found] == problems


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ((), (("Failed", "True"),), ""),
        ((), (("Other", "False"),), ""),
        ((), (("Failed", "False"),), "status.conditions[0].status"),
        ((), (("", "True"),), "status.conditions[0].type"),
        ((), (("X", "True"), ("X", "True")), "status.conditions[1].type"),
        ((), (("Approved", "True"),), "may not add"),
        ((("Approved", "True"),), (), "may not remove"),
        ((("Approved", "True"),), (("Approved", "True"), ("Denied", "True")), "mutually exclusive"),
        ((("Approved", "True"),), (("Approved", "True"),), ""),
    ],
)
def test_conditions_of_a_status(old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...], why: str) -> None:
    before = RULE.prepare_status(request(old), request(), CONTEXT)
    after = RULE.prepare_status(request(new), before, CONTEXT)
    found = problems_of(after, before)
    assert (why in found) if why else (found == "")
    assert all(condition.last_update_time for condition in after.status.conditions if condition.type == "Failed")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"", b"?", "at least one CERTIFICATE"),
        (b"", PEM, "only CERTIFICATE PEM blocks"),
        (b"", BAD_CERTIFICATE, "status.certificate"),
        (b"a", b"b", "may not modify existing"),
        (b"a", b"a", ""),
    ],
)
def test_the_certificate(old: bytes, new: bytes, why: str) -> None:
    before = request(certificate=old)
    after = replace(before, status=replace(before.status, certificate=coded(new)))
    found = problems_of(after, before)
    assert (why in found) if why else (found == "")
