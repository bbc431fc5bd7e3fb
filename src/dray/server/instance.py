"""An API server on a state directory: opens the store, makes the secrets that are missing, listens, stops."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dray.api import codec, registry, stored_parts
from dray.api.custom import CustomObject
from dray.api.meta import Object
from dray.api.shared_parts import share
from dray.process.clock import Clock, RealClock
from dray.process.http import Application, Limits, Listener
from dray.server.api_server import ApiServer, Options
from dray.server.kubelets.connection import KubeletTrust
from dray.server.kubelets.proxy import KubeletProxy
from dray.server.observers.audit import AuditLog
from dray.server.observers.audit_file import Rotation
from dray.server.observers.audit_policy import DEFAULT, AuditPolicy
from dray.server.observers.handling import Observer
from dray.server.observers.request_log import RequestLog
from dray.server.security import shared_keys
from dray.server.security.certificates import server_names
from dray.server.security.credentials import Credentials
from dray.server.security.identity import MASTERS, Identity, authenticated
from dray.server.security.kubeconfig import server_url
from dray.server.security.state_directory import StateDirectory, StateDirectoryError
from dray.server.upkeep import published_authority, together
from dray.server.upkeep.certificate_signing import keep_signed
from dray.server.upkeep.own_endpoints import Place, Sightings, find_address, keep_endpoints, try_to_publish
from dray.store import OutOfSpace, Store, open_store
from dray.store.encryption import NONE, Encryption
from dray.store.lmdb_backend import QUOTA_BYTES

if TYPE_CHECKING:
    from dray.store.etcd import EtcdAddress

log = logging.getLogger(__name__)

ADMIN = authenticated("kubernetes-admin", (MASTERS,))


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started."""

    directory: Path
    bind: str = "127.0.0.1"
    port: int = 6443
    tls: bool = True
    names: tuple[str, ...] = ()
    tokens: dict[str, Identity] = msgspec.field(default_factory=dict)
    disabled_gates: frozenset[str] = frozenset()
    disabled_plugins: frozenset[str] = frozenset()
    disabled_versions: frozenset[str] = frozenset()
    anonymous: bool = True
    """Whether somebody without credentials is let in, as `system:anonymous`."""
    audit_log: Path | None = None
    audit_policy: AuditPolicy = DEFAULT
    audit_rotation: Rotation = Rotation()
    log_requests: bool = False
    limits: Limits = Limits()
    kubelets: KubeletTrust = KubeletTrust("", "")
    """How to reach kubelets; without a certificate, one of the server's own authority."""
    etcd: EtcdAddress | None = None
    """Where the data is, if not in the directory."""
    quota_bytes: int = QUOTA_BYTES
    """How large the database may get."""
    encryption: Encryption = NONE
    """What is encrypted before it is stored."""
    around: Callable[[Application], Application] | None = None
    """What requests over HTTP go through first."""


def decode_stored(resource: str, data: bytes) -> Object:
    """An object as the store kept it; what it has in common with others is there once."""
    plural, _, group = resource.partition(".")
    kind = registry.by_resource(group, plural)
    if kind is not None:
        return stored_parts.decode(data, kind.hub)
    obj = codec.decode(data, CustomObject)
    share(obj.metadata)
    return obj


def open_in(settings: ServerSettings) -> Store:
    """The store of a state directory, or the etcd that it names instead. Raises StoreError."""
    if settings.etcd is not None:
        from dray.server.etcd_instance import open_etcd

        return open_etcd(settings.etcd, settings.directory, decode_stored, settings.encryption)
    return open_store(
        settings.directory, decode_stored, quota_bytes=settings.quota_bytes, encryption=settings.encryption
    )


def _audit_log(settings: ServerSettings) -> AuditLog | None:
    if settings.audit_log is None:
        return None
    return AuditLog(settings.audit_log, settings.audit_policy, settings.audit_rotation)


class Instance(ApiServer):
    """A server with its own directory. `url` is where it listens, `kubeconfig` the file that leads there."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        open_store: Callable[[ServerSettings], Store] = open_in,
        clock: Clock | None = None,
    ) -> None:
        """Opens the state directory, and the store in it, or wherever `open_store` finds one.

        Raises StateDirectoryError or StoreError.
        """
        clock = clock or RealClock()
        directory = StateDirectory(settings.directory)
        store = open_store(settings)
        names = server_names((settings.bind, find_address(settings.bind), *settings.names))
        self.settings = settings
        self.credentials = self._credentials(directory, names, datetime.fromtimestamp(clock.now(), UTC))
        self.url = ""
        self._audit = _audit_log(settings)
        super().__init__(store, clock, self._options_for(settings), observers=self._observers())

    def _credentials(self, directory: StateDirectory, names: tuple[str, ...], now: datetime) -> Credentials:
        """The server's secrets; those that all servers of a cluster have are the same in all of them."""
        if self.settings.etcd is not None:
            from dray.server.etcd_instance import SharedInEtcd

            def make() -> None:
                Credentials(directory, names, now)

            shared_keys.share_keys(directory, SharedInEtcd(self.settings.etcd, self.settings.encryption), make)
        return Credentials(directory, names, now)

    def _options_for(self, settings: ServerSettings) -> Options:
        tls = self.credentials.tls_context() if settings.tls else None
        return Options(
            signing_key=self.credentials.signing_key,
            tokens={self.credentials.admin_token: ADMIN, **settings.tokens},
            anonymous=settings.anonymous,
            disabled_gates=settings.disabled_gates,
            disabled_plugins=settings.disabled_plugins,
            disabled_versions=settings.disabled_versions,
            limits=settings.limits,
            around=settings.around,
            listeners=(Listener(settings.bind, settings.port, tls),),
            kubelets=KubeletProxy(self._kubelet_trust),
            address=f"{settings.bind}:{settings.port}",
        )

    def _kubelet_trust(self) -> KubeletTrust:
        """As whom the server comes to kubelets: as itself, or as whom an admin says."""
        given = self.settings.kubelets
        if given.certificate:
            return given
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        certificate, key = self.credentials.kubelet_client_files(now)
        return KubeletTrust(str(certificate), str(key), given.authority)

    def _observers(self) -> list[Observer]:
        observers: list[Observer] = [] if self._audit is None else [self._audit]
        if self.settings.log_requests:
            observers.append(RequestLog())
        return observers

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.settings.directory / "kubeconfig"

    async def start(self) -> None:
        """Makes the first objects, listens, writes the kubeconfig.

        Raises OSError if the port is taken or the audit log cannot be written. Either way, `stop` must follow.
        """
        certificate = self.credentials.authority.pair.certificate
        if self.store.refusal:
            log.error("%s", self.store.refusal)
        await self.store.start()
        try:
            await together.ensure(self.store, self.prepare)
            await together.ensure(self.store, lambda: published_authority.publish(self.engine, certificate))
        except OutOfSpace as error:  # whoever makes room has to get in
            log.error("not all that belongs into every cluster is there: %s", error)
        if self._audit is not None:
            self._audit.start()
        self.keep(keep_signed(self.engine, self.credentials.authority, self.roles, self._clock))
        await self.serve()
        self.url = server_url(self.settings.bind, self.ports[0], tls=self.settings.tls)
        self._write_kubeconfig()
        await self._publish_place()

    async def _publish_place(self) -> None:
        """Has the cluster's own Service lead here, if others can reach this machine at all."""
        address = find_address(self.settings.bind)
        if address:
            own = Place(address, self.ports[0])
            sightings = Sightings(self._clock.monotonic)
            await try_to_publish(self.engine, own, sightings)
            self.keep(keep_endpoints(self.engine, own, sightings, self._clock))

    def _write_kubeconfig(self) -> None:
        """Raises StateDirectoryError, but not because of a full disk: the one that is there may still lead here."""
        try:
            self.credentials.write_admin_kubeconfig(self.url)
        except StateDirectoryError as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.ENOSPC:
                raise
            log.error("%s The server is at %s.", error, self.url)

    async def stop(self, patience: float = 3.0) -> None:
        """Lets requests in progress finish, then closes everything. Idempotent."""
        await super().stop(patience)
        await self.store.close()
        if self._audit is not None:
            await self._audit.close()
