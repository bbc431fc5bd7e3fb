"""What the pages say is checked where a program can check it: links, commands, flags, gates, controllers, metrics."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from tools import api_page, commands_page, driver_api_page, kinds_page, man_pages, rights_page

import dray
from commands import run_here
from dray.api import registry
from dray.api.effects import EFFECTS
from dray.controllers.catalog import CATALOG
from dray.process import switches

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    if (ROOT / name).exists()
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
METRIC = re.compile(
    r"""(?:MetricFamily|Counter|Gauge|Histogram|_family|_histogram)\(\s*f?"(?:\{\w+\})?([a-z]*(?:_[a-z]+)+)\"""",
    re.DOTALL,
)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them: lower case, no punctuation, dashes for spaces."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert not broken, f"{page.name} points at what is not there"


@pytest.mark.req("implied-20")
def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    missing = [
        page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"({page.name})" not in index
    ]
    assert not missing


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    assert all(f"({page.name})" in index for page in folder.glob("0*.md"))


def test_the_page_of_commands_is_current() -> None:
    assert commands_page.PAGE.read_text() == commands_page.render_page(), "run: make generate"


def test_the_page_of_what_may_be_imported_is_current() -> None:
    assert api_page.PAGE.read_text() == api_page.render_page(), "run: make generate"


def test_the_manual_pages_are_current() -> None:
    written = {file.name: file.read_text() for file in man_pages.FOLDER.iterdir()}
    assert written == man_pages.render_pages(), "run: make generate"


def test_the_page_of_the_driver_sdk_is_current_and_says_something_of_everything() -> None:
    page = driver_api_page.render_page()
    assert driver_api_page.PAGE.read_text() == page, "run: make generate"
    silent = [name for name in driver_api_page.names() if f"## `{name}`\n\n\n" in page]
    assert not silent
    assert not re.findall(r"\*\*`([a-z_]+)\(.*`\*\*\n\n\n", page), "methods without words"


@pytest.mark.req("4381-216")
@pytest.mark.req("5055-137")
def test_the_page_of_kinds_is_current() -> None:
    assert kinds_page.PAGE.read_text() == kinds_page.render_page(), "run: make generate"


def test_the_page_of_rights_is_current() -> None:
    """A role that gives more than it gave changes the page, and so shows in review (issue 14)."""
    assert rights_page.PAGE.read_text() == rights_page.render_page(), "run: make generate"


def test_of_every_kind_it_is_said_what_it_does() -> None:
    assert {kind.resource for kind in registry.kinds()} == set(EFFECTS)


def test_every_option_says_what_it_means() -> None:
    silent = [line for line in commands_page.render_page().splitlines() if re.fullmatch(r"\| `.*` \|\s*\|", line)]
    assert not silent


def test_the_word_for_a_value_is_none_of_pythons() -> None:
    found = [
        (page.name, words)
        for page in (ROOT / "docs" / "man").iterdir()
        for words in re.findall(r"^\.B .*\b(?:TEXT|INTEGER|FLOAT)\b.*", page.read_text(), re.MULTILINE)
    ]
    assert not found


def test_every_controller_is_described() -> None:
    text = (ROOT / "docs" / "controllers.md").read_text()
    assert not [name for name in CATALOG if f"`{name}`" not in text]


def metric_names() -> set[str]:
    """The names of metrics in the sources: what constructors of metrics are given, with `{prefix}` left out."""
    names = set()
    for file in (ROOT / "src" / "dray").rglob("*.py"):
        text = file.read_text()
        if "prometheus_client" in text:
            names.update(METRIC.findall(text))
    return names


def test_every_metric_is_described() -> None:
    text = "".join((ROOT / "docs" / name).read_text() for name in ("metrics.md", "server.md", "node.md", "eviction.md"))
    names = metric_names()
    assert len(names) > 30
    assert not sorted(name for name in names if name not in text)


@pytest.mark.req("5055-137")
def test_every_gate_is_described() -> None:
    text = (ROOT / "docs" / "server.md").read_text()
    assert not [name for name in switches.FEATURE_GATES if f"`{name}`" not in text]


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == dray.__version__


OFFLINE = re.findall(
    r"`dray ([^`]+)`",
    "\n".join(line for line in (ROOT / "examples" / "README.md").read_text().splitlines() if "offline:" in line),
)


@pytest.mark.parametrize("words", OFFLINE)
def test_offline_examples_run_as_printed(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(OFFLINE) > 3
    monkeypatch.chdir(ROOT)
    done = run_here(*shlex.split(words))
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout


def test_promises_name_tests_that_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / "security.md").read_text())
    assert len(named) > 15
    assert not [name for name in named if not (ROOT / name).exists()]
