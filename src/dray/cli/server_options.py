"""The options that commands have in common which run a server or a part of one, or look into what it stores."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dray.cli import clusters, output
from dray.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from dray.server.instance import ServerSettings
    from dray.server.kubelets.connection import KubeletTrust
    from dray.store.encryption import Encryption
    from dray.store.etcd import EtcdAddress


class Switch(StrEnum):
    """On or off, as Kubernetes' own flags have it."""

    TRUE = "true"
    FALSE = "false"


FEW_FILES = 4096
"""A connection takes a descriptor."""
DEFAULT_QUOTA = "8Gi"
DEFAULT_PREFIX = "/registry"
SMALLEST_QUOTA = 4 << 20


def directory_option(text: str) -> Any:
    """A state directory: that of a bare `dray up`, unless told otherwise."""
    return typer.Option(
        "--dir",
        help=text,
        default_factory=clusters.default_directory,
        show_default=f"{clusters.USUAL}/{clusters.DEFAULT}, or $XDG_DATA_HOME/dray/{clusters.DEFAULT} if that is set",
    )


Directory = Annotated[Path, directory_option("State directory; made if absent.")]
FeatureGates = Annotated[
    str, typer.Option("--feature-gates", help="Gates to turn off: Name=false,...; all are on by default.")
]
FilterTimeout = Annotated[
    float,
    typer.Option(
        "--filter-timeout",
        metavar="SECONDS",
        min=0.001,
        help="How long the scheduler may look for devices on one node (FilterTimeout of Kubernetes).",
    ),
]


class StoreOptions(OptionGroup, frozen=True):
    """Where the data is."""

    store: Annotated[
        str,
        typer.Option(
            metavar="lmdb|etcd=URL,...",
            help="Where the data is: in the state directory (lmdb), or in etcd, which several servers can share.",
        ),
    ] = "lmdb"
    etcd_prefix: Annotated[str, typer.Option(help="Under which key of etcd everything is.")] = DEFAULT_PREFIX
    etcd_authority: Annotated[
        Path | None, typer.Option("--etcd-cacert", help="Who signs the certificates of etcd, for https.")
    ] = None
    etcd_certificate: Annotated[Path | None, typer.Option("--etcd-cert", help="As whom the server goes to etcd.")] = (
        None
    )
    etcd_key: Annotated[Path | None, typer.Option(help="Its key.")] = None

    def etcd(self, quota: str = DEFAULT_QUOTA) -> EtcdAddress | None:
        """The etcd to use; None if none. Ends the command if that is nonsense."""
        authority, certificate, key = self.etcd_authority, self.etcd_certificate, self.etcd_key
        if self.store == "lmdb":
            if authority or certificate or key or self.etcd_prefix != DEFAULT_PREFIX:
                output.fail("--etcd-… options need --store etcd=URL[,URL…].")
            return None
        from dray.store.etcd import AddressError, EtcdAddress, read_address

        if quota != DEFAULT_QUOTA:
            output.fail("--quota-bytes is for lmdb; etcd has a quota of its own (etcd --quota-backend-bytes).")
        if (certificate is None) != (key is None):
            output.fail("--etcd-cert and --etcd-key go together")
        if not self.etcd_prefix.strip("/"):
            output.fail(f"--etcd-prefix: {self.etcd_prefix!r} names no key; it looks like {DEFAULT_PREFIX}.")
        try:
            urls = read_address(self.store)
            prefix = self.etcd_prefix
            address = EtcdAddress(urls=urls, prefix=prefix, authority=authority, certificate=certificate, key=key)
            if (authority or certificate) and not address.is_encrypted:
                output.fail("--etcd-cacert and --etcd-cert are for https, and --store has http.")
            address.credentials()
        except AddressError as error:
            output.fail(str(error))
        return address

    def words(self) -> list[str]:
        """What leads a server there."""
        given = {
            "--store": self.store,
            "--etcd-prefix": "" if self.etcd_prefix == DEFAULT_PREFIX else self.etcd_prefix,
            "--etcd-cacert": self.etcd_authority,
            "--etcd-cert": self.etcd_certificate,
            "--etcd-key": self.etcd_key,
        }
        return [f"{option} {value}" for option, value in given.items() if value]


class ServerOptions(StoreOptions, frozen=True):
    """What every API server can be told."""

    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 6443
    bind: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1"
    token_file: Annotated[
        Path | None, typer.Option(help='Static tokens, one `token,user,uid,"group1,group2"` per line.')
    ] = None
    feature_gates: FeatureGates = ""
    runtime_config: Annotated[str, typer.Option(help="API versions to turn off: group/version=false,...")] = ""
    kubelet_certificate: Annotated[
        Path | None,
        typer.Option(
            "--kubelet-client-certificate",
            help="As whom the server goes to kubelets, for logs and exec; by default as itself, by its own authority.",
        ),
    ] = None
    kubelet_key: Annotated[Path | None, typer.Option("--kubelet-client-key", help="Its key.")] = None
    kubelet_authority: Annotated[
        Path | None,
        typer.Option(
            "--kubelet-certificate-authority",
            help="Who signs certificates of kubelets whose Node does not name theirs; without, those are not checked.",
        ),
    ] = None
    quota_bytes: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            help="How large the database may get, such as 2Gi; beyond it, only deletes and what adds nothing are "
            "taken.",
        ),
    ] = DEFAULT_QUOTA
    encryption_file: Annotated[
        Path | None,
        typer.Option(
            "--encryption-provider-config",
            metavar="FILE",
            help="What is encrypted before it is stored, and with which keys: an EncryptionConfiguration of "
            "apiserver.config.k8s.io/v1.",
        ),
    ] = None
    server_names: Annotated[
        list[str] | None,
        typer.Option(
            "--server-name",
            metavar="NAME",
            help="Name or address that the server's certificate is good for, besides --bind; such as that of a "
            "balancer.",
        ),
    ] = None
    anonymous_auth: Annotated[
        Switch,
        typer.Option(
            help="Whether requests without credentials are let in as system:anonymous, who may see health and version."
        ),
    ] = Switch.TRUE
    log_format: Annotated[output.Format, typer.Option(help="Logs on standard error as text or as JSON lines.")] = (
        output.Format.TEXT
    )
    verbosity: Annotated[int, typer.Option("--verbosity", "-v", help="1 logs every request.", min=0)] = 0

    def settings(self, directory: Path) -> ServerSettings:
        """What they make of a server on a state directory. Ends the command if that is nonsense."""
        from dray.process import logs, switches
        from dray.server.instance import ServerSettings
        from dray.server.security.token_file import TokenFileError, read_token_file

        try:
            gates = switches.disabled_gates(self.feature_gates)
            return ServerSettings(
                directory=directory,
                bind=self.bind,
                port=self.port,
                tokens=read_token_file(self.token_file) if self.token_file else {},
                disabled_gates=gates,
                disabled_versions=switches.disabled_versions(self.runtime_config, gates),
                quota_bytes=quota_bytes(self.quota_bytes),
                encryption=encryption(self.encryption_file),
                names=certified_names(self.server_names),
                etcd=self.etcd(self.quota_bytes),
                anonymous=self.anonymous_auth is Switch.TRUE,
                log_requests=self.verbosity >= logs.REQUESTS_FROM,
                kubelets=self._kubelets(),
            )
        except (TokenFileError, switches.SwitchError) as error:
            output.fail(str(error))

    def configure_logs(self) -> None:
        """Writes logs as they are asked for."""
        from dray.process import logs

        logs.configure(json=self.log_format is output.Format.JSON, verbosity=self.verbosity)

    def _kubelets(self) -> KubeletTrust:
        """How to reach kubelets. Ends the command if files are missing."""
        from dray.server.kubelets.connection import KubeletTrust

        if (self.kubelet_certificate is None) != (self.kubelet_key is None):
            output.fail("--kubelet-client-certificate and --kubelet-client-key go together")
        paths = (self.kubelet_certificate, self.kubelet_key, self.kubelet_authority)
        for path in paths:
            if path is not None and not path.is_file():
                output.fail(f"{path}: no such file")
        return KubeletTrust(*(str(path.absolute()) if path is not None else "" for path in paths))


def certified_names(given: list[str] | None) -> tuple[str, ...]:
    """The names and addresses of `--server-name`. Ends the command if nobody could reach a server by one of them."""
    for name in given or ():
        if not _can_be_reached(name):
            what = "is no name of a machine and no address, such as api.example.com or 10.0.0.7"
            output.fail(f"--server-name {name!r} {what}")
    return tuple(given or ())


def _can_be_reached(name: str) -> bool:
    from ipaddress import ip_address

    from dray.api.names import validate_dns1123_subdomain

    try:
        ip_address(name)
    except ValueError:
        has_letters = any(letter.isalpha() for letter in name)  # numbers alone are an address, or nothing
        return has_letters and not validate_dns1123_subdomain(name.lower().removeprefix("*."))
    return True


def encryption(file: Path | None) -> Encryption:
    """What is encrypted. Ends the command if the file cannot be used."""
    from dray.server.security.encryption_configuration import EncryptionConfigurationError, read_encryption
    from dray.store.encryption import NONE

    if file is None:
        return NONE
    try:
        return read_encryption(file)
    except EncryptionConfigurationError as error:
        output.fail(str(error))


def disabled_plugins(enabled: str, disabled: str) -> frozenset[str]:
    """Which rules of admission are off in a server by itself. Ends with exit code 2 for a name that is none."""
    known = {"LimitRanger", "PodSecurity", "ServiceAccount"}
    on, off = ({name for name in map(str.strip, text.split(",")) if name} for text in (enabled, disabled))
    for option, names in (("--enable-admission-plugins", on), ("--disable-admission-plugins", off)):
        if unknown := sorted(names - known):
            output.fail(f"{option}: {unknown[0]!r} cannot be switched; there are {', '.join(sorted(known))}.")
    if on & off:
        output.fail(f"{sorted(on & off)[0]} is both enabled and disabled.")
    return frozenset(({"ServiceAccount"} - on) | off)


def quota_bytes(text: str) -> int:
    """The quota of the database. Ends the command if it is none."""
    from dray.api.quantity import Quantity, QuantityError

    try:
        size = Quantity.parse(text).nanos // 10**9
    except QuantityError as error:
        output.fail(f"--quota-bytes: {error}")
    if size < SMALLEST_QUOTA:
        output.fail(f"--quota-bytes: {text} is too little; give at least {SMALLEST_QUOTA >> 20}Mi.")
    return size
