"""Bytes in fields: read as people write them, written in one way."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api import codec
from dray.api.binary import Base64
from dray.api.generated.certificates import CertificateSigningRequest
from dray.api.generated.core import Secret


@given(st.binary(max_size=40), st.integers(1, 9))
def test_bytes_come_back_however_they_are_broken_into_lines(data: bytes, width: int) -> None:
    text = Base64.of(data)
    lines = [text[at : at + width] for at in range(0, len(text), width)]
    for joint in ("\n", "\r\n"):
        assert Base64.parse(joint.join(lines) + joint) == text
    assert text.size == len(data)


@pytest.mark.parametrize("text", ["YW Jj", "YWI", "YWI==", "é", "_-8="])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="illegal base64"):
        Base64.parse(text)


def test_a_secret_is_stored_in_one_way() -> None:
    found = codec.read({"kind": "Secret", "apiVersion": "v1", "data": {"a": "YWJj\nZGVm\n", "b": ""}}, Secret).obj
    assert found is not None
    assert codec.to_builtins(found)["data"] == {"a": "YWJjZGVm", "b": ""}
    wrong = codec.read({"kind": "Secret", "apiVersion": "v1", "data": {"a": "?"}}, Secret)
    assert [(error.field, error.reason) for error in wrong.errors] == [("data[a]", "FieldValueTypeInvalid")]


@pytest.mark.parametrize("value", [0, 1, False, True, {}, [], 1.5, {"a": 1}])
def test_what_is_no_text_is_refused(value: object) -> None:
    document = {"kind": "Secret", "apiVersion": "v1", "data": {"a": value}}
    for reading in (codec.read(document, Secret), codec.read_json(json.dumps(document).encode(), Secret)):
        assert [error.field for error in reading.errors] == ["data[a]"]


def test_no_certificate_is_left_out() -> None:
    request = {"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1"}
    found = codec.read({**request, "status": {"certificate": ""}}, CertificateSigningRequest).obj
    assert found is not None
    assert "certificate" not in codec.to_builtins(found)["status"]
