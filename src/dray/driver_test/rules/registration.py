"""Registration: how a driver introduces itself, and what it promises there."""

from __future__ import annotations

import asyncio
import stat
from functools import partial
from pathlib import Path

import grpc.aio

from dray.api.names import validate_driver_name
from dray.driver_test.kubelet import CallFailed
from dray.driver_test.rule import Broken, Level, NotApplicable, demand, rule
from dray.driver_test.stage import DeviceName
from dray.driver_test.trial import Trial
from dray.plugins import contracts

HEALTH_SECONDS = 35.0


@rule("GetInfo gives the plugin type, a valid driver name and a socket that is there")
async def plugin_info(trial: Trial) -> None:
    """What a node reads first."""
    registration = await trial.registration()
    info = await registration.get_info()
    demand(info.type == contracts.PLUGIN_TYPE, f'type is "{info.type}"; it must be "{contracts.PLUGIN_TYPE}"')
    problems = validate_driver_name(info.name)
    demand(not problems, f'name is "{info.name}"; it {" and ".join(problems)}')
    if info.endpoint:
        path = Path(info.endpoint)
        demand(path.is_absolute(), f'endpoint is "{path}"; it must be an absolute path')
        demand(path.exists() and stat.S_ISSOCK(path.stat().st_mode), f'endpoint "{path}" is not a socket that is there')


@rule("Every advertised version answers; calls without claims succeed")
async def advertised_versions(trial: Trial) -> None:
    """A version that is promised must be served."""
    plugin = await trial.plugin()
    demand(plugin.version, "no version is advertised that a node knows")
    for version in plugin.versions:
        if version not in contracts.DRA_SERVICES:
            continue
        try:
            answers = [await plugin.prepare([], version), await plugin.unprepare([], version)]
        except CallFailed as error:
            raise Broken(f"{version} is advertised, but a call without claims fails with {error}") from None
        demand(answers == [{}, {}], f"{version}: a call without claims must be answered with an empty map")


@rule("Both v1 and v1beta1 are served, for older and newer nodes", Level.SHOULD)
async def both_versions(trial: Trial) -> None:
    """Drivers should implement both (4381-152)."""
    plugin = await trial.plugin()
    missing = [version for version in contracts.DRA_SERVICES if version not in plugin.versions]
    demand(not missing, f"{' and '.join(missing)} is not advertised")


@rule("A driver that was refused goes on, and can be registered later, more than once")
async def refused_registration(trial: Trial) -> None:
    """A node may refuse, restart, and ask again."""
    registration = await trial.registration()
    try:
        await registration.notify("refused to see what happens")
    except CallFailed as error:
        if error.code is grpc.StatusCode.UNAVAILABLE:
            raise Broken(f"after a refusal the driver is gone: {trial.subject.problem() or error}") from None
    try:
        await registration.get_info()
        await registration.notify()
        await registration.notify()
    except CallFailed as error:
        why = trial.subject.problem() or str(error)
        raise Broken(f"after a refusal the driver cannot be registered any more: {why}") from None


@rule("The health service, if advertised, reports soon, and only devices that are published")
async def health_reports(trial: Trial) -> None:
    """A node believes a report for 30 s, so the first one must come by then."""
    plugin = await trial.plugin()
    version = contracts.choose_health_version(plugin.versions)
    if version is None:
        raise NotApplicable("no health service is advertised")
    method = contracts.WATCH_HEALTH[version]
    stream = contracts.stream(plugin.channel, method, method.request())
    try:
        report = await asyncio.wait_for(anext(aiter(stream)), min(HEALTH_SECONDS, trial.timeout))
    except TimeoutError:
        raise Broken("no health report came; the first one is due when a node starts to watch") from None
    except (grpc.aio.AioRpcError, StopAsyncIteration) as error:
        if isinstance(error, grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.UNIMPLEMENTED:
            # Which is how a driver whose library always advertises the service says so; nodes ask no more then.
            raise NotApplicable("the driver says that it has no health to report") from None
        raise Broken(f"{version} is advertised, but watching fails: {error}") from None
    finally:
        stream.cancel()
    for device in report.devices:
        name = DeviceName(device.device.pool_name, device.device.device_name)
        await trial.until(
            partial(_is_published, trial, name),
            f"health of device {'/'.join(name)} is reported, which is not published",
        )


def _is_published(trial: Trial, name: DeviceName) -> bool:
    return name in trial.stage.devices(trial.driver)
