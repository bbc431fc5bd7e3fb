"""`make site`: the documentation as a site, in `site/`; every link and every page of it is checked.

The same Markdown is read in the repository and on the site. So pages above `docs/` become pages of the site, a link to
anything else outside `docs/` (tests, examples) becomes the path of that file, and all of it is put into one folder for
the generator, with `docs/site.yml`, which says what is where.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
ABOVE = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "examples/README.md": "examples.md",
    "docs/README.md": "index.md",
}
"""Pages that are called something else on the site."""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


class SiteError(Exception):
    """The generator found something wrong; the message is what it said."""


def main() -> None:
    """Writes the site."""
    with tempfile.TemporaryDirectory(prefix="dray-site-") as directory:
        try:
            built = build(Path(directory))
        except SiteError as error:
            sys.exit(str(error))
        shutil.rmtree(ROOT / "site", ignore_errors=True)
        shutil.copytree(built, ROOT / "site")


def build(directory: Path) -> Path:
    """The site, made in a directory; SiteError if a link or a page leads nowhere."""
    assemble(directory / "docs")
    shutil.copy(ROOT / "docs" / "site.yml", directory / "mkdocs.yml")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SiteError(done.stdout + done.stderr)
    return directory / "site"


def assemble(folder: Path) -> None:
    """Puts all pages and pictures into one folder, with links as the site has them."""
    sources = {_on_the_site(path): path for path in _pages()}
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures")
    for name, path in sources.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(translate((ROOT / path).read_text(), path, frozenset(sources)))


def translate(text: str, path: str, pages: frozenset[str]) -> str:
    """The text of a page, whose links are as in the repository, for the site, which has these pages."""
    parts, last = [], 0
    for fence in FENCE.finditer(text):
        parts += [_links(text[last : fence.start()], path, pages), fence[0]]
        last = fence.end()
    return "".join([*parts, _links(text[last:], path, pages)])


def _pages() -> list[str]:
    folder = ROOT / "docs"
    found = [file for file in folder.rglob("*.md") if file.relative_to(folder).parts[0] != "requirements"]
    return [*ABOVE, *(f"docs/{file.relative_to(folder).as_posix()}" for file in found if file != folder / "README.md")]


def _on_the_site(path: str) -> str:
    """Where a file of the repository is on the site; its own path if it is not there."""
    return ABOVE.get(path) or path.removeprefix("docs/")


def _links(text: str, source: str, pages: frozenset[str]) -> str:
    here = posixpath.dirname(_on_the_site(source)) or "."

    def change(link: re.Match[str]) -> str:
        words, target = link.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if _on_the_site(file) not in pages:
            return words if words.startswith("`") else f"{words} (`{file}`)"
        return f"[{words}]({posixpath.relpath(_on_the_site(file), here)}{'#' if anchor else ''}{anchor})"

    return LINK.sub(change, text)


if __name__ == "__main__":
    main()
