"""Writes `docs/man`: a manual page for each command and one for all, read from the commands themselves.

    python -m tools.man_pages

They are in the wheel, so that `man dray-up` works once it is installed. A test checks that they are current.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tools.commands_page import commands

from dray import __version__

FOLDER = Path(__file__).parent.parent / "docs" / "man"
ENDING = """\
.SH EXIT STATUS
0 yes, 1 no, 2 bad input or cannot run.
"""


def render_pages() -> dict[str, str]:
    """The text of each page by the name of its file."""
    every = commands()
    pages = {f"{'-'.join(path)}.1": _page(path, command) for path, command in every}
    return {"dray.1": _overview(every), **pages}


def main() -> None:
    """Writes the pages, and removes those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    pages = render_pages()
    for old in FOLDER.glob("*.1"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text)


def _overview(every: list[tuple[tuple[str, ...], Any]]) -> str:
    lines = [_title(("dray",)), ".SH NAME\ndray \\- a control plane for devices, behind the Kubernetes API\n"]
    lines.append(".SH SYNOPSIS\n.B dray\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n")
    lines += [f".TP\n.BR {_text('-'.join(path))} (1)\n{_text(_about(command))}\n" for path, command in every]
    return "".join([*lines, ENDING])


def _page(path: tuple[str, ...], command: Any) -> str:
    context = command.context_class(command, info_name=" ".join(path))
    usage = " ".join(command.collect_usage_pieces(context))
    about = _about(command)
    lines = [_title(path), f".SH NAME\n{'-'.join(path)} \\- {_text(about[:1].lower() + about[1:].rstrip('.'))}\n"]
    lines.append(f".SH SYNOPSIS\n.B {_text(' '.join(path))}\n{_text(usage)}\n")
    lines.append(f".SH DESCRIPTION\n{_paragraphs(command.help or '')}")
    records = [(one.param_type_name, one.get_help_record(context)) for one in command.params]
    for kind, heading in (("argument", "ARGUMENTS"), ("option", "OPTIONS")):
        found = [record for name, record in records if name == kind and record is not None]
        if found:
            lines.append(f".SH {heading}\n")
        lines += [f".TP\n.B {_text(names)}\n{_text(meaning)}\n" for names, meaning in found]
    return "".join([*lines, ENDING, ".SH SEE ALSO\n.BR dray (1)\n"])


def _title(path: tuple[str, ...]) -> str:
    return f'.TH "{"-".join(path).upper()}" "1" "" "dray {__version__}" "dray"\n'


def _about(command: Any) -> str:
    """The first sentence of its help."""
    return re.split(r"(?<=\.) ", " ".join((command.help or "").split()), maxsplit=1)[0]


def _paragraphs(text: str) -> str:
    return ".PP\n".join(f"{_text(part)}\n" for part in re.split(r"\n\s*\n", text.strip()))


def _text(text: str) -> str:
    """One line as troff reads it: nothing in it is an instruction, and dashes are those that people type."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    main()
