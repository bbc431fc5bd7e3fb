"""The files of the page: typed, without a way to make markup of text, and nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from dray.dashboard import static_files

ROOT = Path(__file__).parents[3]


def test_scripts_have_no_way_to_make_markup_of_text() -> None:
    ways = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser|createContextualFragment"
    )
    for name, file in static_files.load().items():
        if name.endswith(".js"):
            assert re.search(ways, file.data.decode()) is None, name


def test_nothing_comes_from_another_server_and_nothing_is_inline() -> None:
    for name, file in static_files.load().items():
        text = file.data.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text.replace('"http://', ""), name
        assert "https:" not in text, name
    page = static_files.load()[""].data.decode()
    assert re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", page) is None


def test_every_file_that_is_imported_is_there() -> None:
    files = static_files.load()
    for name, file in files.items():
        for wanted in re.findall(r'from "\./([\w-]+\.js)"', file.data.decode()):
            assert wanted in files, f"{name} imports {wanted}"


def test_the_page_is_typed() -> None:
    compiler = shutil.which("tsc")
    assert compiler, "tsc is missing: run tools/ensure_browser.sh"
    command = [compiler, "-p", str(ROOT / "tools" / "page_types.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_dark_colours_are_the_same_for_those_who_chose_them_and_for_those_whose_system_is_dark() -> None:
    style = static_files.load()["style.css"].data.decode()
    chosen = re.search(r'^:root\[data-theme="dark"\] \{(.*?)\}', style, re.S | re.M)
    of_system = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', style, re.S)
    assert chosen is not None
    assert of_system is not None
    assert chosen[1].split() == of_system[1].split()
