"""`dray driver-test`: plays kubelet and API server against a DRA driver and says which rules it keeps."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from dray.cli import completion, output, terminal
from dray.prose.wording import count

if TYPE_CHECKING:
    from dray.driver_test import DriverReport, Result, Rule

P = ParamSpec("P")

_MARKS = {"passed": "✔", "failed": "✘", "advice": "!", "skipped": "–"}


def run(
    *,
    command: Annotated[
        str,
        typer.Option(
            help="Start the driver with this command, in a cluster of its own. {node}, {kubeconfig}, {registry}, "
            "{plugins}, {plugin} and {cdi} stand for where things are; NODE_NAME, KUBECONFIG, REGISTRY_DIR, PLUGIN_DIR "
            "and CDI_DIR in its environment too."
        ),
    ] = "",
    socket: Annotated[
        Path | None, typer.Option(help="The registration socket of a driver that runs. Needs --kubeconfig.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="The cluster that the running driver belongs to.")] = None,
    node: Annotated[str, typer.Option("--node-name", help="The node that the driver is on.")] = "test-node",
    cdi_dir: Annotated[Path, typer.Option(help="Where the running driver writes CDI specs.")] = Path("/var/run/cdi"),
    rules: Annotated[
        list[str] | None,
        typer.Option("--rule", help="Try this rule only; may be repeated.", autocompletion=completion.driver_rules),
    ] = None,
    many: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An environment variable that makes it publish over 128 devices."),
    ] = None,
    parameters: Annotated[
        str, typer.Option(metavar="JSON", help="Opaque parameters for claims, if the driver needs some.")
    ] = "",
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for anything.")] = 45.0,
    list_rules: Annotated[bool, typer.Option("--list", help="Show the rules and end.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the results to this file as JUnit XML, too.")] = None,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Test a DRA driver, in whatever language, against the rules of the kubelet's plugin API.

    Exit code 0: it keeps all rules; 1: it breaks some; 2: it cannot be tested, or none of the rules could be tried.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would speak between the results
    import uvloop

    from dray.all_in_one.trial_server import serve_trial
    from dray.client.kubeconfig import KubeconfigError
    from dray.driver_test import StageError, SubjectError, session

    chosen = _find_rules(rules or [])
    if list_rules:
        _print_rules(chosen, format_)
        return
    if bool(command) == bool(socket):
        output.fail("give either --command, to start a driver, or --socket, for one that runs.")
    options = session.SessionOptions(
        serve=serve_trial,
        command=command,
        socket=socket,
        kubeconfig=kubeconfig,
        node=node,
        cdi_dir=cdi_dir,
        timeout=timeout,
        parameters=_parameters(parameters),
        many=dict(_variable(text) for text in many or ()),
    )
    try:
        told = (_print_result, _print_said) if format_ is output.Format.TEXT else ()
        if told and junit is not None:  # it is wanted whole, whoever reads on
            told = (_while_read(_print_result), _while_read(_print_said))
        report = uvloop.run(_until_told_to_stop(session.run(options, chosen, *told)))
    except (SubjectError, StageError, KubeconfigError) as error:
        output.fail(f"{error}.")
    if junit is not None:
        _write_junit(report, junit)
    if format_ is output.Format.JSON:
        output.print_json(report.to_dict(), "DriverTest")
    else:
        _print_summary(report)
    if not report.was_tried:
        output.fail("none of the rules could be tried.")
    raise typer.Exit(output.YES if report.passed else output.NO)


async def _until_told_to_stop(work: Coroutine[Any, Any, DriverReport]) -> DriverReport:
    """SIGTERM ends the driver too, which has a process group of its own. Raises KeyboardInterrupt then."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _find_rules(names: list[str]) -> tuple[Rule, ...]:
    from dray.driver_test import find_rules

    try:
        return find_rules(names)
    except LookupError as error:
        output.fail(str(error.args[0]))


def _parameters(text: str) -> Any:
    from dray.api.codec import DecodeError, parse_json

    if not text:
        return None
    try:
        return parse_json(text.encode())
    except DecodeError as error:
        output.fail(f"--parameters is not JSON: {error}")


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        output.fail(f'--many must be NAME=VALUE, not "{text}".')
    return name, value


def _print_rules(rules: tuple[Rule, ...], format_: output.Format) -> None:
    from dray.cli import tables

    header, rows = ("rule", "level", "what"), [(rule.name, rule.level.value, rule.title) for rule in rules]
    if format_ is output.Format.JSON:
        output.print_json([dict(zip(header, row, strict=True)) for row in rows], "DriverRuleList")
    else:
        tables.print_table(header, rows)


def _while_read(tell: Callable[P, None]) -> Callable[P, None]:
    """Tells nothing more once nobody reads it."""

    def told(*what: P.args, **named: P.kwargs) -> None:
        try:
            tell(*what, **named)
        except BrokenPipeError:
            terminal.read_by_nobody()

    return told


def _print_result(result: Result) -> None:
    print(f"{_MARKS[result.outcome]} {result.rule:30} {result.title}", flush=True)
    if result.message:
        print(f"  {'':30} {result.message}", flush=True)


def _print_said(cause: str, said: tuple[str, ...]) -> None:
    """What the driver said last: why it ended, before all that comes of it, or beside the first rule that it broke."""
    how, _, last = cause.partition(": ")
    if cause:
        print(f"\nThe cause: {how}; after that no rule can be tried.", "The last that it said:" if last else "")
    else:
        print("\nThe last that the driver said:")
    if said or last:
        print("\n".join(f"  {line}" for line in said) or "  (nothing)")
    print(flush=True)


def _write_junit(report: DriverReport, path: Path) -> None:
    from dray.driver_test.junit import to_xml

    try:
        path.write_bytes(to_xml(report))
    except OSError as error:
        output.fail(f"cannot write {path}: {error.strerror}.")


def _print_summary(report: DriverReport) -> None:
    from dray.driver_test import Outcome

    kept, broken = report.count(Outcome.PASSED), report.count(Outcome.FAILED)
    advice, skipped = report.count(Outcome.ADVICE), report.count(Outcome.SKIPPED)
    name = report.driver or "The driver"
    print(f"\n{name}: {count(kept, 'rule')} kept, {broken} broken, {advice} advised, {skipped} not tried.")
