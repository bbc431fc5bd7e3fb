"""What makes a CDI spec valid: names, edits that mean something, and a version that knows the fields in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dray.api.field import FieldError, duplicate, invalid, not_supported, required
from dray.api.names import validate_label_key
from dray.cdi.names import check_device_name, check_kind

if TYPE_CHECKING:
    from dray.cdi.spec import ContainerEdits, Spec

VERSIONS: Final = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
HOOKS: Final = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
NODE_TYPES: Final = ("b", "c", "u", "p")
NO_PERMISSIONS: Final = "none"
ANNOTATIONS_BYTES: Final = 256 * 1024
UINT32_MAX: Final = 2**32 - 1
LONGEST_CLOS_ID: Final = 4096


def validate(spec: Spec) -> tuple[FieldError, ...]:
    """Every rule that a spec breaks; nothing for a valid one."""
    return tuple(_check_spec(spec))


def minimum_version(spec: Spec) -> str:
    """The oldest version that has all fields in use. A spec that says so is read by the most runtimes."""
    every = [spec.container_edits, *(device.container_edits for device in spec.devices)]
    rdt = [edits.intel_rdt for edits in every if edits.intel_rdt is not None]
    if any(edits.net_devices for edits in every) or any(it.schemata or it.enable_monitoring for it in rdt):
        return "1.1.0"
    if rdt or any(edits.additional_gids for edits in every):
        return "0.7.0"
    dotted_class = "." in spec.kind.partition("/")[2]
    if dotted_class or spec.annotations or any(device.annotations for device in spec.devices):
        return "0.6.0"
    starts_with_digit = any(device.name[:1].isdigit() for device in spec.devices)
    if starts_with_digit or any(node.host_path for edits in every for node in edits.device_nodes):
        return "0.5.0"
    return "0.4.0" if any(mount.type for edits in every for mount in edits.mounts) else "0.3.0"


def _check_spec(spec: Spec) -> Iterator[FieldError]:
    yield from _check_version(spec)
    for problem in check_kind(spec.kind):
        yield invalid("kind", spec.kind, problem)
    yield from _check_annotations("annotations", spec.annotations)
    yield from _check_edits("containerEdits", spec.container_edits)
    if not spec.devices:
        yield required("devices", "a spec has at least one device")
    names: set[str] = set()
    for index, device in enumerate(spec.devices):
        path = f"devices[{index}]"
        for problem in check_device_name(device.name):
            yield invalid(f"{path}.name", device.name, problem)
        if device.name in names:
            yield duplicate(f"{path}.name", device.name)
        names.add(device.name)
        yield from _check_annotations(f"{path}.annotations", device.annotations)
        if not device.container_edits:
            yield required(f"{path}.containerEdits", "a device edits something")
        yield from _check_edits(f"{path}.containerEdits", device.container_edits)


def _check_version(spec: Spec) -> Iterator[FieldError]:
    version = spec.cdi_version.removeprefix("v")
    if version not in VERSIONS:
        yield not_supported("cdiVersion", spec.cdi_version, VERSIONS)
        return
    needed = minimum_version(spec)
    # Everything up to the oldest version that is still in use is read alike.
    if VERSIONS.index(version) < VERSIONS.index(needed):
        yield invalid("cdiVersion", spec.cdi_version, f"the fields in use need at least {needed}")


def _check_annotations(path: str, annotations: dict[str, str]) -> Iterator[FieldError]:
    for key in annotations:
        for problem in validate_label_key(key.lower()):
            yield invalid(f"{path}[{key}]", key, problem)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES:
        yield invalid(path, size, f"annotations may have at most {ANNOTATIONS_BYTES} bytes in all")


def _check_edits(path: str, edits: ContainerEdits) -> Iterator[FieldError]:
    yield from _check_env(f"{path}.env", edits.env)
    for index, node in enumerate(edits.device_nodes):
        where = f"{path}.deviceNodes[{index}]"
        yield from _check_path(f"{where}.path", node.path)
        if node.type and node.type not in NODE_TYPES:
            yield not_supported(f"{where}.type", node.type, NODE_TYPES)
        if node.permissions != NO_PERMISSIONS and set(node.permissions) - set("rwm"):
            yield invalid(f"{where}.permissions", node.permissions, "must be some of r, w and m, or none")
        for name, number in (("uid", node.uid), ("gid", node.gid), ("fileMode", node.file_mode)):
            yield from _check_uint32(f"{where}.{name}", number)
    yield from _check_hooks(f"{path}.hooks", edits)
    for index, mount in enumerate(edits.mounts):
        yield from _check_path(f"{path}.mounts[{index}].hostPath", mount.host_path)
        yield from _check_path(f"{path}.mounts[{index}].containerPath", mount.container_path)
    yield from _check_net_devices(f"{path}.netDevices", edits)
    if edits.intel_rdt is not None:
        yield from _check_clos_id(f"{path}.intelRdt.closID", edits.intel_rdt.clos_id)
    for index, group in enumerate(edits.additional_gids):
        yield from _check_uint32(f"{path}.additionalGids[{index}]", group)


def _check_env(path: str, env: tuple[str, ...]) -> Iterator[FieldError]:
    for index, entry in enumerate(env):
        if entry.find("=") <= 0 or "\0" in entry:
            yield invalid(f"{path}[{index}]", entry, "must be NAME=value")


def _check_path(path: str, value: str) -> Iterator[FieldError]:
    if not value:
        yield required(path)
    yield from _check_word(path, value)


def _check_word(path: str, value: str) -> Iterator[FieldError]:
    if "\0" in value:
        yield invalid(path, value, "must not contain a zero byte")


def _check_hooks(path: str, edits: ContainerEdits) -> Iterator[FieldError]:
    for index, hook in enumerate(edits.hooks):
        if hook.hook_name not in HOOKS:
            yield not_supported(f"{path}[{index}].hookName", hook.hook_name, HOOKS)
        yield from _check_path(f"{path}[{index}].path", hook.path)
        for number, word in enumerate(hook.args):
            yield from _check_word(f"{path}[{index}].args[{number}]", word)
        yield from _check_env(f"{path}[{index}].env", hook.env)
        yield from _check_uint32(f"{path}[{index}].timeout", hook.timeout)


def _check_net_devices(path: str, edits: ContainerEdits) -> Iterator[FieldError]:
    on_host: set[str] = set()
    in_container: set[str] = set()
    for index, device in enumerate(edits.net_devices):
        names = (("hostInterfaceName", device.host_interface_name, on_host), ("name", device.name, in_container))
        for field, name, seen in names:
            if not name:
                yield required(f"{path}[{index}].{field}")
            elif name in seen:
                yield duplicate(f"{path}[{index}].{field}", name)
            seen.add(name)


def _check_clos_id(path: str, value: str) -> Iterator[FieldError]:
    is_file_name = value not in (".", "..") and "/" not in value and "\n" not in value
    if value != "/" and not (is_file_name and len(value.encode()) < LONGEST_CLOS_ID):
        yield invalid(path, value, "must be a file name, or /")


def _check_uint32(path: str, value: int | None) -> Iterator[FieldError]:
    if value is not None and not 0 <= value <= UINT32_MAX:
        yield invalid(path, value, f"must be between 0 and {UINT32_MAX}")
