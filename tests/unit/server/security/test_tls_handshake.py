"""Real TLS over real sockets: which clients get in, and whom the server takes them for."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from dray.server.security.authentication import Authenticator
from dray.server.security.certificates import Authority, KeyPair, server_names
from dray.server.security.credentials import Credentials
from dray.server.security.identity import ANONYMOUS, Identity
from dray.server.security.state_directory import StateDirectory
from dray.server.security.tokens import ServiceAccountTokens
from patience import PATIENCE

NAMES = server_names(["127.0.0.1", "box"])
Peer = dict[str, Any] | None


@pytest.fixture(scope="module")
def now() -> dt.datetime:
    """TLS libraries take the time from the system, so certificates must be valid now."""
    return dt.datetime.now(dt.UTC)


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory, now: dt.datetime) -> Credentials:
    return Credentials(StateDirectory(tmp_path_factory.mktemp("state")), NAMES, now)


def client_context(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=credentials.authority.pair.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def show(context: ssl.SSLContext, pair: KeyPair, directory: Path) -> None:
    path = directory / "client.pem"
    path.write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(path)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "127.0.0.1") -> tuple[Peer, str | None]:
    """The client's certificate as the server sees it, and the protocol they agreed on. Raises ssl.SSLError."""
    seen: list[Peer] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            try:
                with server.wrap_socket(connection, server_side=True) as tls:
                    seen.append(tls.getpeercert() or None)
                    tls.sendall(b"x")
                    tls.recv(1)
            except (ssl.SSLError, OSError):
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname(), timeout=PATIENCE) as connection,
                client.wrap_socket(connection, server_hostname=name) as tls,
            ):
                # With TLS 1.3 the server's refusal of a certificate arrives with the first read.
                if tls.recv(1) != b"x":
                    raise ssl.SSLError("closed by the server")
                return seen[0], tls.selected_alpn_protocol()
        finally:
            thread.join(PATIENCE)


def identify(peer: Peer, tokens: ServiceAccountTokens, now: dt.datetime) -> Identity | None:
    return Authenticator({}, tokens, now.timestamp).authenticate({}, peer)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "kubernetes.default.svc", "box"])
def test_server_is_known_by_its_names(credentials: Credentials, version: ssl.TLSVersion, name: str) -> None:
    client = client_context(credentials)
    client.minimum_version = client.maximum_version = version
    assert handshake(credentials.tls_context(), client, name) == (None, "http/1.1")


def test_a_name_that_is_not_the_servers(credentials: Credentials) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(credentials.tls_context(), client_context(credentials), "elsewhere.example.com")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_protocols_are_refused(credentials: Credentials) -> None:
    client = client_context(credentials)
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    client.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, OSError)):
        handshake(credentials.tls_context(), client)


def test_client_certificate_becomes_an_identity(
    credentials: Credentials, tokens: ServiceAccountTokens, now: dt.datetime, tmp_path: Path
) -> None:
    client = client_context(credentials)
    show(client, credentials.authority.issue_client_certificate("system:node:n1", ["system:nodes", "g"], now), tmp_path)
    peer, _ = handshake(credentials.tls_context(), client)
    identity = identify(peer, tokens, now)
    assert identity == Identity("system:node:n1", ("system:nodes", "g", "system:authenticated"))
    assert identify(peer, tokens, now + dt.timedelta(days=366)) is None


def test_no_client_certificate_is_anonymous(
    credentials: Credentials, tokens: ServiceAccountTokens, now: dt.datetime
) -> None:
    peer, _ = handshake(credentials.tls_context(), client_context(credentials))
    identity = identify(peer, tokens, now)
    assert identity is not None
    assert identity.user == ANONYMOUS


def test_bad_client_certificates_end_the_handshake(credentials: Credentials, now: dt.datetime, tmp_path: Path) -> None:
    authority = credentials.authority
    foreign = Authority.create(now)
    bad = {
        "foreign authority": foreign.issue_client_certificate("system:admin", ["system:masters"], now),
        "expired": authority.issue_client_certificate("u", [], now, dt.timedelta(seconds=-60)),
        "a server's": authority.issue_server_certificate(NAMES, now),
    }
    for what, pair in bad.items():
        client = client_context(credentials)
        show(client, pair, tmp_path)
        with pytest.raises((ssl.SSLError, OSError)):
            raise AssertionError(f"{what}: {handshake(credentials.tls_context(), client)}")
