"""Which etcd to use, and how to get there."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import msgspec

from dray.store.errors import StoreError

PREFIX = "/registry"

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # etcd ends connections that ask more often than every 5 s whether it is there.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
]


class AddressError(StoreError):
    """The addresses of etcd, or the files that lead there, cannot be used."""


class EtcdAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a cluster of etcd, and the files for TLS."""

    urls: tuple[str, ...]
    prefix: str = PREFIX
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def targets(self) -> list[str]:
        """Host and port of every member. Raises AddressError."""
        return [_target(url) for url in self.urls]

    @property
    def is_encrypted(self) -> bool:
        """Whether etcd is spoken to over TLS."""
        return self.urls[0].startswith("https:")

    def credentials(self) -> Any:
        """What TLS needs; None without TLS. Raises AddressError."""
        if not self.is_encrypted:
            return None
        try:
            authority, key, certificate = (
                path.read_bytes() if path is not None else None for path in (self.authority, self.key, self.certificate)
            )
            self._check_files()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise AddressError(f"cannot read {error.filename}: {reason}") from error
        return grpc.ssl_channel_credentials(authority, key, certificate)

    def _check_files(self) -> None:
        """Whether they are what they are given as: gRPC would only say that it cannot connect. Raises AddressError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            if self.authority is not None:
                context.load_verify_locations(self.authority)
        except ssl.SSLError as error:
            raise AddressError(f"--etcd-cacert {self.authority}: there is no certificate in it, as PEM") from error
        try:
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, password="")
        except ssl.SSLError as error:
            files = f"--etcd-cert {self.certificate} and --etcd-key {self.key}"
            raise AddressError(f"{files}: they are no certificate and its key, as PEM without a password") from error

    def __str__(self) -> str:
        return ",".join(self.urls)


def read_address(text: str) -> tuple[str, ...]:
    """The URLs in `etcd=URL[,URL…]`; the scheme of the first goes for all that have none. Raises AddressError."""
    engine, _, rest = text.partition("=")
    urls = [url.strip() for url in rest.split(",") if url.strip()]
    if engine != "etcd" or not urls:
        raise AddressError(f"--store: {text!r} is neither lmdb nor etcd=URL[,URL…]")
    scheme = urlsplit(urls[0]).scheme if "://" in urls[0] else "http"
    whole = tuple(url if "://" in url else f"{scheme}://{url}" for url in urls)
    if len({urlsplit(url).scheme for url in whole}) > 1:
        raise AddressError(f"--store: {text!r}: either all members of etcd have https, or none")
    for url in whole:
        _target(url)
    return whole


def _target(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port or 2379
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or parts.path.strip("/"):
        raise AddressError(f"--store: {url!r} is no address of etcd; it looks like https://host:2379")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"
