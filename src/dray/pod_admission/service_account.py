"""The ServiceAccount of a pod: what a pod gets from it, and which secrets it lets a pod use.

The volume with the token has one name for all pods of an account, where Kubernetes draws one for every pod: names of
volumes mean something within their pod alone, and pods of one spec go on sharing it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from msgspec.structs import replace

from dray.api.generated.core import (
    ConfigMapProjection,
    Container,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    EphemeralContainer,
    KeyToPath,
    LocalObjectReference,
    ObjectFieldSelector,
    PodSpec,
    ProjectedVolumeSource,
    ServiceAccount,
    ServiceAccountTokenProjection,
    Volume,
    VolumeMount,
    VolumeProjection,
)
from dray.api.sharing import remembered
from dray.api.well_known import NAME_LETTERS

DEFAULT: Final = "default"
ACCESS_VOLUME: Final = "kube-api-access-"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ENFORCED: Final = "kubernetes.io/enforce-mountable-secrets"
TOKEN_SECONDS: Final = 3607
"""Kubernetes' own odd number, by which tokens are known that were not asked for."""
FILE_MODE: Final = 0o644
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))

AnyContainer = TypeVar("AnyContainer", Container, EphemeralContainer)

FindProblem = Callable[[PodSpec, ServiceAccount], str]
"""Says what an account does not allow of a spec; empty if it allows all of it."""


def equipped(spec: PodSpec, account: ServiceAccount) -> PodSpec:
    """The spec with its account, and what that gives: the token, unless somebody does not want it, and pull secrets."""
    wanted = spec.automount_service_account_token
    if wanted is None:
        wanted = account.automount_service_account_token is not False
    secrets = () if spec.image_pull_secrets else tuple(secret.name for secret in account.image_pull_secrets)
    return _equipped(spec, account.metadata.name, wanted, secrets)


@remembered
def _equipped(spec: PodSpec, account: str, with_token: bool, pull_secrets: tuple[str, ...]) -> PodSpec:
    if not spec.service_account_name:
        spec = replace(spec, service_account_name=account, service_account=account)
    if with_token:
        spec = _with_token(spec, account)
    if pull_secrets:
        spec = replace(spec, image_pull_secrets=tuple(LocalObjectReference(name=name) for name in pull_secrets))
    return spec


def _with_token(spec: PodSpec, account: str) -> PodSpec:
    """Every container that has nothing where tokens are gets the token there."""
    own = next((volume.name for volume in spec.volumes if volume.name.startswith(ACCESS_VOLUME)), "")
    mount = VolumeMount(name=own or ACCESS_VOLUME + _suffix(account), read_only=True, mount_path=MOUNT_PATH)
    containers = tuple(_mounting(container, mount) for container in spec.containers)
    init_containers = tuple(_mounting(container, mount) for container in spec.init_containers)
    if containers == spec.containers and init_containers == spec.init_containers:
        return spec
    volumes = spec.volumes if own else (*spec.volumes, Volume(name=mount.name, projected=_TOKEN_FILES))
    return replace(spec, containers=containers, init_containers=init_containers, volumes=volumes)


def _mounting(container: Container, mount: VolumeMount) -> Container:
    if any(own.mount_path == MOUNT_PATH for own in container.volume_mounts):
        return container
    return replace(container, volume_mounts=(*container.volume_mounts, mount))


def _suffix(account: str) -> str:
    number = zlib.crc32(account.encode())
    letters = []
    for _ in range(5):
        number, rest = divmod(number, len(NAME_LETTERS))
        letters.append(NAME_LETTERS[rest])
    return "".join(letters)


_TOKEN_FILES: Final = ProjectedVolumeSource(
    default_mode=FILE_MODE,
    sources=(
        VolumeProjection(
            service_account_token=ServiceAccountTokenProjection(path="token", expiration_seconds=TOKEN_SECONDS)
        ),
        VolumeProjection(
            config_map=ConfigMapProjection(name="kube-root-ca.crt", items=(KeyToPath(key="ca.crt", path="ca.crt"),))
        ),
        VolumeProjection(
            downward_api=DownwardAPIProjection(
                items=(
                    DownwardAPIVolumeFile(
                        path="namespace",
                        field_ref=ObjectFieldSelector(api_version="v1", field_path="metadata.namespace"),
                    ),
                )
            )
        ),
    ),
)


def limits_secrets(account: ServiceAccount) -> bool:
    """Whether pods of an account may use none but the secrets that it lists."""
    return account.metadata.annotations.get(ENFORCED, "") in _TRUE


def problem_with_secrets(spec: PodSpec, account: ServiceAccount) -> str:
    """The first secret that a pod names and its account does not list; empty if there is none."""
    return next(_strange_secrets(spec, account), "")


def problem_with_ephemeral_secrets(spec: PodSpec, account: ServiceAccount) -> str:
    """The same for ephemeral containers, which are added later."""
    return next(_strange_variables(spec.ephemeral_containers, "ephemeral container", account), "")


def _strange_secrets(spec: PodSpec, account: ServiceAccount) -> Iterator[str]:
    known = {secret.name for secret in account.secrets}
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secret_name not in known:
            yield _strange("volume with", volume.secret.secret_name, account)
    yield from _strange_variables(spec.init_containers, "init container", account)
    yield from _strange_variables(spec.containers, "container", account)
    for index, secret in enumerate(spec.image_pull_secrets):
        if all(secret.name != listed.name for listed in account.image_pull_secrets):
            yield (
                f'imagePullSecrets[{index}].name="{secret.name}" is not allowed because service account '
                f"{account.metadata.name} does not reference that imagePullSecret"
            )


def _strange_variables(containers: tuple[AnyContainer, ...], what: str, account: ServiceAccount) -> Iterator[str]:
    known = {secret.name for secret in account.secrets}
    for container in containers:
        for variable in container.env:
            reference = variable.value_from.secret_key_ref if variable.value_from is not None else None
            if reference is not None and reference.name not in known:
                where = f"{what} {container.name} with envVar {variable.name} referencing"
                yield _strange(where, reference.name, account)
        for source in container.env_from:
            if source.secret_ref is not None and source.secret_ref.name not in known:
                yield _strange(f"{what} {container.name} with envFrom referencing", source.secret_ref.name, account)


def _strange(where: str, secret: str, account: ServiceAccount) -> str:
    return (
        f'{where} secret.secretName="{secret}" is not allowed because service account {account.metadata.name} '
        "does not reference that secret"
    )
