"""The image, built from the Containerfile and run as a cluster runs it: not as root, on a root that nobody can write.

Registries are not asked: the base is Debian's own Python, made by debootstrap, or the archive that `IMAGE_BASE` names.
Where no container runtime works (in a container without cgroups of its own), a namespace of mounts does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dray
from patience import PATIENCE
from release_world import ROOT, build

MISSING = [name for name in ("buildah", "debootstrap", "unshare") if shutil.which(name) is None]
PACKAGES = "python3,python3-venv,ca-certificates"
LEFT_OUT = ("./var/cache/apt", "./var/lib/apt/lists", "./usr/share/doc", "./usr/share/man", "./usr/share/locale")
READ_ONLY = """
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t tmpfs tmpfs "$0/tmp" && mount -t proc proc "$0/proc"
mount --bind /dev "$0/dev" && exec chroot --userspec="$1" "$0" /usr/bin/env -i "${@:2}"
"""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts are for root"),
]


class Images:
    """buildah with a store of its own."""

    def __init__(self, directory: Path) -> None:
        self.store = ["--root", str(directory / "root"), "--runroot", str(directory / "run"), "--storage-driver", "vfs"]

    def call(self, *words: object) -> str:
        """What buildah prints."""
        command = ["buildah", *self.store, *(str(word) for word in words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def build(self, context: Path, tag: str, *words: object) -> str:
        """The identity of an image of ours."""
        trust = "--volume=/etc/ssl/certs:/etc/ssl/certs:ro"  # the machine's, for its package index
        options = ("--quiet", "--isolation=chroot", "--network=host", "--no-cache", "--timestamp=0", trust)
        return self.call("build", *options, *words, "--tag", tag, context)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    """A store with a base: nothing but Debian and its Python."""
    directory = tmp_path_factory.mktemp("images")
    archive = Path(os.environ.get("IMAGE_BASE") or directory / "base.tar")
    if not archive.exists():
        tree = directory / "tree"
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "trixie", tree], check=True)
        excluded = [f"--exclude={path}" for path in LEFT_OUT]
        subprocess.run(["tar", "-C", tree, *excluded, "-cf", archive, "."], check=True)
    images = Images(directory)
    container = images.call("from", "scratch")
    images.call("add", container, archive, "/")
    images.call("commit", "--rm", container, "localhost/base")
    return images


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the Containerfile needs of a checkout after `make dist`."""
    context = tmp_path_factory.mktemp("context")
    for name in ("Containerfile", "requirements.lock"):
        shutil.copy(ROOT / name, context)
    (context / "dist").mkdir()
    build("wheel", context / "dist")
    return context


@pytest.fixture(scope="module")
def image(images: Images, context: Path) -> str:
    return images.build(context, "localhost/dray", "--build-arg=BASE=localhost/base")


@pytest.fixture(scope="module")
def settings(images: Images, image: str) -> dict[str, Any]:
    """What the image says of how it is run."""
    found: dict[str, Any] = json.loads(images.call("inspect", "--type=image", image))["OCIv1"]["config"]
    return found


def test_it_does_not_run_as_root_and_starts_dray(settings: dict[str, Any]) -> None:
    assert settings["User"] == "65532:65532"
    assert settings["Entrypoint"] == ["/dray/bin/dray"]


def test_the_same_sources_give_the_same_image(images: Images, context: Path, image: str) -> None:
    assert images.build(context, "localhost/again", "--build-arg=BASE=localhost/base") == image


def test_a_cluster_runs_on_a_root_that_nobody_can_write(images: Images, image: str, settings: dict[str, Any]) -> None:
    container = images.call("from", image)
    root = images.call("mount", container)
    script = """
touch /x 2>/dev/null || touch /dray/x 2>/dev/null || echo read-only as $(id -u)
dray --version
dray up --detach --nodes 1 --port 0 --dir /tmp/state
dray get nodes --kubeconfig /tmp/state/kubeconfig
dray down --dir /tmp/state
"""
    words = [root, settings["User"], *settings["Env"], "sh", "-c", script]
    inside = ["unshare", "--mount", "bash", "-ec", READ_ONLY, *words]
    done = subprocess.run(inside, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    images.call("rm", container)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["read-only as 65532", f"dray {dray.__version__}"]
    assert any(line.startswith("node-1") and "ready" in line for line in lines)
