"""A real browser for tests of the page: Debian's Chromium without a window, driven as a person would."""

from __future__ import annotations

import base64
import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from tools.ensure_axe import VERSION as AXE_VERSION

from patience import PATIENCE, eventually

WIDE = (1280, 800)
PHONE = (390, 844)
AXE = Path(sys.prefix) / "axe-core" / f"axe-{AXE_VERSION}.min.js"


class Page:
    """The page in a browser."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, address: str) -> None:
        """Goes to a view (`#/fleet`), or to a link."""
        if address.startswith("#"):
            self.driver.execute_script("location.hash = arguments[0]", address)
        else:
            self.driver.get(address)

    def text(self) -> str:
        """All that is to be read, in one line."""
        return " ".join(str(self.script("return document.body.innerText")).split())

    def sees(self, *texts: str) -> None:
        """Waits until all of them are on the page."""
        for text in texts:
            eventually(lambda text=text: text in self.text(), f"{text!r} is not on the page, which says: {self.tell()}")  # type: ignore[misc]

    def tell(self) -> str:
        """For who reads why a test failed."""
        return self.text()[:1500]

    def find(self, selector: str) -> WebElement:
        """Waits for an element that is shown."""

        def look() -> WebElement | None:
            return next(
                (one for one in self.driver.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()), None
            )

        return eventually(look, f"there is no {selector}")

    def press(self, label: str) -> None:
        """Clicks on the first button or link of that name that can be clicked."""

        def look() -> bool:
            # In one step, since views are painted anew while they are looked at.
            return bool(
                self.script(
                    """const found = [...document.querySelectorAll("button, a")].find(
                      (one) => one.innerText.trim() === arguments[0] && !one.disabled && one.offsetParent !== null);
                    if (found) found.click();
                    return Boolean(found);""",
                    label,
                )
            )

        eventually(look, f"there is nothing called {label!r} to click on; the page says: {self.tell()}")

    def type(self, selector: str, text: str) -> None:
        """Writes into a field, in place of what is there."""
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def choose(self, selector: str, value: str) -> None:
        """Chooses from a list."""
        option = f'{selector} option[value="{value}"]'
        eventually(lambda: self.driver.find_elements(By.CSS_SELECTOR, option), f"there is no {option}")
        self.script(
            """const list = document.querySelector(arguments[0]);
            list.value = arguments[1];
            list.dispatchEvent(new Event("change"));""",
            selector,
            value,
        )

    def script(self, code: str, *arguments: Any) -> Any:
        """What a script of the test finds."""
        return self.driver.execute_script(code, *arguments)

    def click_device(self, device: str, node: str, *, with_shift: bool = False) -> None:
        """Clicks on the square of a device on the map."""
        find = """const map = document.querySelector(".map-canvas")?.heatMap;
            const spot = map?.where(arguments[0], arguments[1]);
            if (!spot) return null;
            const corner = map.canvas.getBoundingClientRect();
            return {x: Math.round(corner.x + spot.x), y: Math.round(corner.y + spot.y)};"""
        spot = eventually(lambda: self.script(find, device, node), f"{device} is not on the map")
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(spot["x"], spot["y"])  # type: ignore[no-untyped-call]
        if with_shift:
            actions.key_down("\ue008").click().key_up("\ue008")
        else:
            actions.click()
        actions.perform()

    def state_of(self, device: str, node: str) -> int:
        """The bits that the map shows for a device; 0 if it does not show it."""
        return int(
            self.script(
                """const map = document.querySelector(".map-canvas")?.heatMap;
                for (const block of map?.order ?? []) {
                  for (const position of block.positions) {
                    if (block.row.n === arguments[1] && map.model.idOf(block.row, position) === arguments[0])
                      return block.row.s.charCodeAt(position) - 48;
                  }
                }
                return 0;""",
                device,
                node,
            )
        )

    def complaints(self) -> list[str]:
        """What the browser has to say of the page: errors of scripts, and what its policy refused."""
        found: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [one["message"] for one in found if one["level"] == "SEVERE"]

    def faults(self) -> list[str]:
        """What axe-core finds that keeps somebody from using the page as it is now."""
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text()})
        found: list[str] = self.driver.execute_async_script(
            """const done = arguments[0];
            const tell = (rule, node) => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`;
            const told = (rule) => rule.nodes.map((node) => tell(rule, node));
            axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.flatMap(told)));"""
        )
        return found

    def turn_to(self, url: str, size: tuple[int, int] = WIDE) -> Page:
        """The same browser as somebody else's, at another server, in another size."""
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        resized = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", resized)
        self.driver.get("about:blank")
        self.complaints()  # of the page that was left, whose server may have ended before it
        return Page(self.driver, url)

    def picture(self, path: Path, height: int) -> None:
        """A screenshot of the upper part."""
        width = self.script("return window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
        path.write_bytes(base64.b64decode(taken["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A browser with nothing in its memory, to be turned to where somebody looks."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium, "chromium is missing: run tools/ensure_browser.sh"
    assert driver, "chromedriver is missing: run tools/ensure_browser.sh"
    options = Options()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--ignore-certificate-errors",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    try:
        started.set_page_load_timeout(PATIENCE)
        started.set_script_timeout(PATIENCE)
        yield Page(started, "")
    finally:
        started.quit()
