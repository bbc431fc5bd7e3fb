"""The entry point: knows every subcommand, imports only the one that is asked for."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from dray import __version__, extras
from dray.cli import (
    allocate,
    backup,
    cel,
    confirm,
    controllers,
    dashboard,
    devices,
    doctor,
    down,
    drain,
    driver,
    driver_test,
    explain,
    get,
    help,
    install,
    lint,
    ls,
    node,
    node_kubeconfig,
    nodes,
    output,
    placement,
    plan,
    record,
    replay,
    restore,
    scale_up,
    scheduler,
    schema,
    server,
    stop_evictions,
    taint,
    terminal,
    untaint,
    up,
    validate,
    what_if,
)

app = typer.Typer(
    name="dray",
    help="A control plane for devices, behind the Kubernetes API.",
    epilog="Exit codes: 0 yes, 1 no, 2 bad input or cannot run.",
    cls=help.Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": help.WIDEST},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dray {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A control plane for devices, behind the Kubernetes API."""


app.command("validate")(validate.run)
app.command("lint")(lint.run)
app.command("cel")(cel.run)
app.command("allocate")(allocate.run)
app.add_typer(explain.app, name="explain")
app.command("devices")(devices.run)
app.command("what-if")(what_if.run)
app.command("scale-up")(scale_up.run)
app.command("up")(up.run)
app.command("down")(down.run)
app.command("ls")(ls.run)
app.command("server")(server.run)
app.command("scheduler")(scheduler.run)
app.command("controllers")(controllers.run)
app.command("node")(node.run)
app.command("node-kubeconfig")(node_kubeconfig.run)
app.add_typer(driver.app, name="driver")
app.command("driver-test")(driver_test.run)
app.command("get")(get.run)
app.command("dashboard")(dashboard.run)
app.command("record")(record.run)
app.command("replay")(replay.run)
app.add_typer(taint.app, name="taint")
app.add_typer(untaint.app, name="untaint")
app.add_typer(drain.app, name="drain")
_PASSED_ON = {"ignore_unknown_options": True, "allow_interspersed_args": True}
app.command("plan", context_settings=_PASSED_ON)(plan.make)
app.command("apply")(plan.apply)
app.command("confirm")(confirm.confirm)
app.command("cancel")(confirm.cancel)
app.command("stop-evictions")(stop_evictions.run)
app.add_typer(nodes.app, name="nodes")
app.add_typer(placement.app, name="placement")
app.command("doctor")(doctor.run)
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("schema")(schema.run)
app.command("backup")(backup.run)
app.command("restore")(restore.run)


def main() -> None:
    """Runs the command line. A closed pipe ends quietly, Ctrl-C with the usual code."""
    terminal.guard()
    try:
        app(prog_name=_program())
    except extras.MissingExtra as error:
        output.fail(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _program() -> str:
    """What people typed: kubectl finds `kubectl-dray` on the path and offers it as `kubectl dray`."""
    return "kubectl dray" if os.path.basename(sys.argv[0]) == "kubectl-dray" else "dray"
