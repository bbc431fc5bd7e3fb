"""ServiceAccounts of pods: which one, what it gives, which secrets it allows."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.generated.core import Pod
from dray.api.kinds import PODS, SERVICE_ACCOUNTS
from dray.api.meta import DeleteOptions
from dray.server.local import LocalClient
from local_server import local_server, refused, typed

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def pod(name: str, namespace: str = "default", annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    spec.setdefault("containers", [{"name": "main", "image": "pause"}])
    meta = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    return typed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def account(name: str, annotations: dict[str, str] | None = None, **more: Any) -> Any:
    meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return typed({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, **more})


async def create(client: LocalClient, wanted: Any) -> Pod:
    made = await client.create(wanted)
    assert isinstance(made, Pod)
    return made


async def test_a_pod_gets_the_default_account_and_its_token() -> None:
    async with local_server(with_roles=False) as server:
        made = (await create(server.client(), pod("p"))).spec
        assert (made.service_account_name, made.service_account) == ("default", "default")
        (volume,) = made.volumes
        assert volume.name.startswith("kube-api-access-")
        assert volume.projected is not None
        token, authority, about = volume.projected.sources
        assert token.service_account_token is not None
        assert (token.service_account_token.path, token.service_account_token.expiration_seconds) == ("token", 3607)
        assert authority.config_map is not None
        assert authority.config_map.name == "kube-root-ca.crt"
        assert about.downward_api is not None
        (mount,) = made.containers[0].volume_mounts
        assert (mount.name, mount.mount_path, mount.read_only) == (volume.name, MOUNT, True)


async def test_pods_of_one_spec_go_on_sharing_it() -> None:
    async with local_server(with_roles=False) as server:
        wanted = pod("a")
        first = await create(server.client(), wanted)
        second = await create(server.client(), type(wanted)(**{**_fields(wanted), "metadata": pod("b").metadata}))
        assert first.spec is second.spec


def _fields(obj: Any) -> dict[str, Any]:
    return {name: getattr(obj, name) for name in obj.__struct_fields__}


async def test_the_first_pod_of_a_namespace_need_not_wait_for_its_account() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(typed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}))
        assert (await create(client, pod("p", "fresh"))).spec.service_account_name == "default"


async def test_an_account_that_there_is_not() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        missing = 'error looking up service account default/nobody: serviceaccount "nobody" not found'
        await refused(client.create(pod("p", serviceAccountName="nobody")), f'pods "p" is forbidden: {missing}')
        await client.delete(SERVICE_ACCOUNTS, "default", "default", DeleteOptions())
        await refused(client.create(pod("p")), 'serviceaccount "default" not found')


@pytest.mark.parametrize(
    ("of_account", "of_pod", "is_mounted"),
    [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
async def test_who_does_not_want_the_token(of_account: bool | None, of_pod: bool | None, is_mounted: bool) -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(account("robot", automountServiceAccountToken=of_account))
        more: dict[str, Any] = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
        made = await create(client, pod("p", serviceAccountName="robot", **more))
        assert bool(made.spec.volumes) is is_mounted


async def test_containers_with_something_else_in_that_place_keep_it() -> None:
    async with local_server(with_roles=False) as server:
        own = {"name": "own", "image": "pause", "volumeMounts": [{"name": "mine", "mountPath": MOUNT}]}
        plain = {"name": "plain", "image": "pause"}
        volumes = [{"name": "mine", "emptyDir": {}}]
        made = await create(server.client(), pod("p", containers=[own, plain], volumes=volumes))
        assert [mount.name for mount in made.spec.containers[0].volume_mounts] == ["mine"]
        assert made.spec.containers[1].volume_mounts[0].mount_path == MOUNT
        assert len(made.spec.volumes) == 2


async def test_pull_secrets_come_from_the_account_unless_the_pod_has_its_own() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(account("puller", imagePullSecrets=[{"name": "registry"}]))
        made = await create(client, pod("a", serviceAccountName="puller"))
        assert [secret.name for secret in made.spec.image_pull_secrets] == ["registry"]
        own = await create(client, pod("b", serviceAccountName="puller", imagePullSecrets=[{"name": "mine"}]))
        assert [secret.name for secret in own.spec.image_pull_secrets] == ["mine"]


async def test_an_account_may_limit_the_secrets_of_its_pods() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        enforced = {"kubernetes.io/enforce-mountable-secrets": "true"}
        await client.create(account("strict", enforced, secrets=[{"name": "known"}]))
        known = {"name": "v", "secret": {"secretName": "known"}}
        other = {"name": "v", "secret": {"secretName": "other"}}
        await client.create(pod("a", serviceAccountName="strict", volumes=[known]))
        why = 'volume with secret.secretName="other" is not allowed because service account strict does not'
        await refused(client.create(pod("b", serviceAccountName="strict", volumes=[other])), why)
        variable = {"name": "V", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}
        container = {"name": "main", "image": "pause", "env": [variable]}
        why = 'container main with envVar V referencing secret.secretName="other" is not allowed'
        await refused(client.create(pod("c", serviceAccountName="strict", containers=[container])), why)


async def test_mirror_pods_are_left_alone_and_want_nothing() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        mirror = {"kubernetes.io/config.mirror": "x"}
        made = await create(client, pod("m", annotations=mirror, nodeName="n"))
        assert (made.spec.service_account_name, made.spec.volumes) == ("", ())
        why = "a mirror pod may not reference service accounts"
        await refused(client.create(pod("n", annotations=mirror, nodeName="n", serviceAccountName="default")), why)
        assert await client.get(PODS, "default", "m") == made
