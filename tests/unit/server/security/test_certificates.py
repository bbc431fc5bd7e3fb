from __future__ import annotations

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dray.server.security import certificates
from dray.server.security.certificates import Authority, CertificateError, KeyPair, must_renew, server_names

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
NAMES = server_names(["10.0.0.5", "host.example.com", "api.example.com"])


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create(NOW)


def usage(pair: KeyPair) -> list[x509.ObjectIdentifier]:
    certificate = certificates.read_certificate(pair.certificate)
    return list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


@pytest.mark.parametrize(
    ("given", "added"),
    [
        (["127.0.0.1"], set()),
        (["0.0.0.0", "192.0.2.7"], {"192.0.2.7"}),
        (["::", ""], set()),
        (["[fd00::1]", "api.example.com"], {"fd00::1", "api.example.com"}),
    ],
)
def test_server_names(given: list[str], added: set[str]) -> None:
    always = {*certificates.LOOPBACK_ADDRESSES, *certificates.SERVICE_NAMES}
    assert set(server_names(given)) == always | added


def test_server_certificate_stands_for_all_names(authority: Authority) -> None:
    pair = authority.issue_server_certificate(NAMES, NOW)
    certificate = certificates.read_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"kubernetes.default.svc", "host.example.com", "api.example.com"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    addresses = {ipaddress.ip_address(text) for text in ("127.0.0.1", "::1", "10.0.0.5")}
    assert addresses == set(names.get_values_for_type(x509.IPAddress))
    assert usage(pair) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert authority.has_signed(certificate)


def test_client_certificate_names_user_and_groups(authority: Authority) -> None:
    pair = authority.issue_client_certificate("system:node:n1", ["system:nodes", "extra"], NOW, dt.timedelta(days=1))
    certificate = certificates.read_certificate(pair.certificate)
    subject = certificate.subject
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:node:n1"]
    organisations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [name.value for name in organisations] == ["system:nodes", "extra"]
    assert usage(pair) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.not_valid_after_utc == NOW + dt.timedelta(days=1)


@pytest.mark.parametrize(("user", "groups"), [("", ["g"]), ("x" * 200, []), ("u", [""])])
def test_names_that_certificates_cannot_hold(authority: Authority, user: str, groups: list[str]) -> None:
    with pytest.raises(CertificateError):
        authority.issue_client_certificate(user, groups, NOW)


def test_bad_server_name(authority: Authority) -> None:
    with pytest.raises(CertificateError, match="neither an IP address nor a DNS name"):
        authority.issue_server_certificate(["büro"], NOW)


@pytest.mark.parametrize(
    ("days", "names", "renew"),
    [
        (0, NAMES, False),
        (0, tuple(reversed(NAMES)), False),
        (334, NAMES, False),
        (336, NAMES, True),
        (400, NAMES, True),
        (-2, NAMES, True),
        (0, (*NAMES, "new.example.com"), True),
        (0, NAMES[:-1], True),
    ],
)
def test_renewal(authority: Authority, days: int, names: tuple[str, ...], renew: bool) -> None:
    pair = authority.issue_server_certificate(NAMES, NOW)
    assert must_renew(pair, authority, names, NOW + dt.timedelta(days=days)) is renew


def test_renewal_of_what_is_broken_or_foreign(authority: Authority) -> None:
    pair = authority.issue_server_certificate(NAMES, NOW)
    other = Authority.create(NOW)
    client = authority.issue_client_certificate("u", [], NOW)
    assert must_renew(KeyPair(b"", b""), authority, NAMES, NOW)
    assert must_renew(KeyPair(pair.certificate, certificates.create_private_key()), authority, NAMES, NOW)
    assert must_renew(pair, other, NAMES, NOW)
    assert must_renew(client, authority, NAMES, NOW)


def test_nothing_outlives_its_authority(authority: Authority) -> None:
    late = authority.not_after - dt.timedelta(days=10)
    pair = authority.issue_server_certificate(NAMES, late)
    assert certificates.read_certificate(pair.certificate).not_valid_after_utc == authority.not_after
    assert not must_renew(pair, authority, NAMES, late)
    with pytest.raises(CertificateError, match="has expired"):
        authority.issue_server_certificate(NAMES, authority.not_after + dt.timedelta(days=1))


def test_what_is_not_an_authority(authority: Authority) -> None:
    other = Authority.create(NOW)
    with pytest.raises(CertificateError, match="the key is not the one of the certificate"):
        Authority(KeyPair(authority.pair.certificate, other.pair.key))
    with pytest.raises(CertificateError, match="not one of an authority"):
        Authority(authority.issue_client_certificate("u", [], NOW))
    with pytest.raises(CertificateError, match="not a PEM certificate"):
        Authority(KeyPair(b"garbage", other.pair.key))
    with pytest.raises(CertificateError, match="not an unencrypted PEM private key"):
        Authority(KeyPair(other.pair.certificate, b"garbage"))
