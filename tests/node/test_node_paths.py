"""Every place where the agent or a driver derives a path: whatever is in the way there, nothing else is touched.

Containers cannot put anything there (`test_node_security_contexts`); these tests do it as root, as if they could.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dray import cdi
from dray.driver import Claim, DriverError
from dray.driver.checkpoint import Checkpoint as DriverCheckpoint
from dray.driver.checkpoint import Record
from dray.files import Directory, UnsafeFile
from dray.node import agent, checkpoint, plugin_watch, registration
from dray.node.agent import AgentError
from dray.node.checkpoint import CheckpointError
from dray.node.drivers import RegistrationRefused
from dray.node.runtime import launcher
from dray.node.runtime.attempt import Attempts
from dray.node.runtime.launch import Launch
from dray.node.runtime.rights import Rights

SPEC = cdi.Spec(cdi_version="0.6.0", kind="example.com/gpu", devices=(cdi.CdiDevice(name="a"),))
LAUNCH = Launch(command=("true",), environment={}, rights=Rights(user=0, group=0))
UID = "0b5ef1c7-6b0b-4b2f-a6cf-1f2f3d0b3a3e"

Use = Callable[[Path], object]
Trap = Callable[[Path, Path], None]
HANDLED = (OSError, AgentError, CheckpointError, cdi.CdiError, DriverError, RegistrationRefused)


def to_file(place: Path, precious: Path) -> None:
    place.symlink_to(precious / "file")


def to_nothing(place: Path, precious: Path) -> None:
    place.symlink_to(precious / "new")


def to_directory(place: Path, precious: Path) -> None:
    place.symlink_to(precious)


def hard_link(place: Path, precious: Path) -> None:
    place.hardlink_to(precious / "file")


def fifo(place: Path, _precious: Path) -> None:
    os.mkfifo(place)


TRAPS = [to_file, to_nothing, to_directory, hard_link, fifo]


def run_attempt(root: Path) -> None:
    attempt = Attempts(root).of(UID, "main", 0)
    attempt.started()
    attempt.exit()
    attempt.is_of(os.getpid())
    with attempt.fresh(LAUNCH, has_input=True) as (standard, traces):
        for descriptor in (standard.output, traces.pid, traces.born, traces.exit):
            os.write(descriptor, b"1\n")
        os.close(attempt.open_input())
    os.close(attempt.open_log())
    os.close(attempt.open_times(to_write=True))
    attempt.launched()
    attempt.forget()


def look_at_attempts(root: Path) -> None:
    attempts = Attempts(root)
    for uid in attempts.pods():
        for made in attempts.of_pod(uid).values():
            for attempt in made:
                attempt.started()
                attempt.exit()
                attempt.is_of(os.getpid())
        attempts.clean(uid)


def use_checkpoint(root: Path) -> None:
    checkpoint.load(root, "boot")
    saved = checkpoint.Checkpoint(root, lambda: checkpoint.State("boot"))
    asyncio.run(saved.save())
    asyncio.run(saved.save())


def lock(root: Path) -> None:
    with agent._locked(agent._open_root(root)):
        pass


def write_spec(root: Path) -> None:
    cdi.write_spec(root / "cdi", "gpu", SPEC)
    cdi.remove_spec(root / "cdi", "gpu")


def read_specs(root: Path) -> None:
    assert cdi.Cache((root / "cdi",)).devices() == ()


def use_driver_records(root: Path) -> None:
    records = DriverCheckpoint(root / "claims")
    list(records)
    records.put(Record(claim=Claim("ns", "c", UID)))
    records.remove(UID)


def register(root: Path) -> None:
    assert list(plugin_watch.find_sockets(root / "plugins_registry")) == []
    registration.check_endpoint(root / "plugins" / "gpu" / "dra.sock")


PLACES: list[tuple[Use, str]] = [
    *((run_attempt, f"pods{below}") for below in ("", f"/{UID}", f"/{UID}/main")),
    *(
        (run_attempt, f"pods/{UID}/main/0.{suffix}")
        for suffix in ("log", "pid", "born", "exit", "launch", "input", "times")
    ),
    *((look_at_attempts, f"pods/{UID}{below}") for below in ("", "/main", "/main/0.pid", "/main/0.exit")),
    *((use_checkpoint, f"dra_manager_state{suffix}") for suffix in ("", ".previous", ".new", ".damaged-1")),
    *((lock, name) for name in ("agent.lock", "plugins", "plugins_registry")),
    *((write_spec, name) for name in ("cdi/gpu.json",)),
    *((read_specs, name) for name in ("cdi/gpu.json", "cdi/gpu.yaml")),
    *((use_driver_records, name) for name in (f"claims/{UID}.json", f"claims/{UID}.json.tmp", "claims/x.json")),
    *((register, name) for name in ("plugins_registry/a.sock", "plugins_registry/below", "plugins/gpu/dra.sock")),
]


def everything(directory: Path) -> dict[str, tuple[int, bytes]]:
    """All that could have been changed."""
    return {
        str(path): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes() if path.is_file() else b"")
        for path in (directory, *sorted(directory.rglob("*")))
    }


@pytest.fixture
def root_path() -> Iterator[Path]:
    """A short one, because the paths of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="paths-") as directory:
        yield Path(directory)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
@pytest.mark.parametrize(("use", "name"), PLACES, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_in_the_way_leads_nowhere(root_path: Path, use: Use, name: str, trap: Trap) -> None:
    precious, root = root_path / "precious", root_path / "root"
    precious.mkdir()
    (precious / "file").write_text("1")
    (precious / "dra.sock").write_text("")
    (root / name).parent.mkdir(parents=True)
    trap(root / name, precious)
    before = everything(precious)
    try:
        use(root)
    except HANDLED as error:
        assert str(error)
    assert everything(precious) == before


@pytest.mark.parametrize("bad", ["..", "../..", "/etc", "a/b", "", ".", "a\0b"])
def test_names_from_elsewhere_name_nothing_else(root_path: Path, bad: str) -> None:
    attempts = Attempts(root_path)
    for attempt in (attempts.of(bad, "main", 0), attempts.of("uid", bad, 0)):
        with pytest.raises(UnsafeFile), attempt.fresh(LAUNCH):
            pass
        assert (attempt.started(), attempt.exit()) == (None, None)
    with pytest.raises(UnsafeFile):
        attempts.clean(bad)
    assert attempts.of_pod(bad) == {}
    with pytest.raises(cdi.CdiError):
        cdi.write_spec(root_path, f"../{bad}", SPEC)
    records = DriverCheckpoint(root_path / "claims")
    for use in (records.get, records.remove):
        if "/" in bad or "\0" in bad:
            with pytest.raises(DriverError):
                use(bad)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_mounts_follow_links_of_trusted_users_alone(root_path: Path) -> None:
    root_path.chmod(0o755)
    (root_path / "real").mkdir()
    (root_path / "real" / "file").write_text("x")
    trusted, placed = root_path / "trusted", root_path / "placed"
    trusted.symlink_to("real")
    placed.symlink_to("/etc")
    os.chown(placed, 1000, 1000, follow_symlinks=False)
    found = launcher.find(str(trusted / "file"))
    assert os.fstat(found).st_ino == (root_path / "real" / "file").stat().st_ino
    os.close(found)
    for path in (placed, placed / "passwd"):
        with pytest.raises(launcher.Failed, match="symbolic link of user 1000"):
            launcher.find(str(path))
    (root_path / "ring").symlink_to("ring")
    with pytest.raises(launcher.Failed):
        launcher.find(str(root_path / "ring"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_root_directory_of_somebody_else_is_refused_with_what_to_do(root_path: Path) -> None:
    root = root_path / "root"
    root.mkdir()
    os.chown(root, 1000, 1000)
    with pytest.raises(AgentError, match=r"belongs to user 1000.*Give another --root"):
        agent._open_root(root)
    os.chown(root, 0, 0)
    root.chmod(0o777)
    agent._open_root(root).close()
    assert stat.S_IMODE(root.stat().st_mode) == 0o755
    with Directory.open(root) as opened:
        assert opened.names() == ["plugins", "plugins_registry"]
