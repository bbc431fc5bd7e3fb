// The frame around all views: who is logged in, where one can go, and which view an address leads to.

import { get, hasKey, logOut, whenLoggedOut } from "./api.js";
import * as device from "./device.js";
import { byId, fill, h } from "./dom.js";
import * as fleet from "./fleet.js";
import * as login from "./login.js";
import * as placement from "./placement.js";
import { current, to } from "./routes.js";
import * as service from "./service.js";
import * as timeline from "./timeline.js";
import * as waiting from "./waiting.js";

/** @typedef {(main: HTMLElement, route: import("./routes.js").Route) => () => void} Show */

const PLACES = [
  ["fleet", "Fleet"],
  ["waiting", "Claims and pods"],
  ["service", "Out of service"],
  ["timeline", "Timeline"],
  ["placement", "Placement"],
];
/** @type {Record<string, Show>} */
const VIEWS = {
  fleet: fleet.show,
  device: device.show,
  waiting: waiting.show,
  pod: waiting.explain,
  claim: waiting.explain,
  service: service.show,
  timeline: timeline.show,
  placement: placement.show,
};
/**
 * Which place a view belongs to.
 * @type {Record<string, string>}
 */
const BELONGS = { device: "fleet", pod: "waiting", claim: "waiting" };

let stop = () => {};
/** @type {any} */
let session = null;
let pending = 0;
let wanted = "";
let hasEnded = false;

function open() {
  stop();
  stop = () => {};
  const route = current();
  const main = byId("main");
  main.className = `view-${route.view}`;
  if (route.view === "login" || !hasKey()) {
    if (route.view !== "login") wanted = location.hash;
    session = null;
    paintTop(route.view);
    stop = login.show(main, route, () => {
      location.hash = wanted && !wanted.startsWith("#/login") ? wanted : "#/fleet";
      wanted = "";
    }, hasEnded ? "Your session has ended. Log in again to go on where you were." : "");
    hasEnded = false;
    return;
  }
  const show = VIEWS[route.view];
  if (!show) {
    location.hash = "#/fleet";
    return;
  }
  paintTop(route.view);
  stop = show(main, route);
  document.title = `${main.querySelector("h1")?.textContent || "dray"} · dray`;
  if (!session) know();
}

async function know() {
  try {
    session = await get("session");
    paintTop(current().view);
  } catch {
    // The view says what is wrong.
  }
}

/** @param {string} view */
function paintTop(view) {
  const place = BELONGS[view] ?? view;
  const top = byId("top");
  const brand = h("a", { class: "brand", href: "#/fleet" }, h("img", { src: "icon.svg", alt: "", width: "22", height: "22" }), "dray");
  if (view === "login" || !hasKey()) {
    fill(top, brand, h("span", { class: "grow" }), themeButton());
    return;
  }
  fill(
    top,
    brand,
    h(
      "nav",
      { "aria-label": "Views" },
      PLACES.map(([name, title]) =>
        h("a", { href: to(name), "aria-current": name === place ? "page" : null }, title, name === "waiting" && pending > 0 && h("span", { class: "badge", title: "pending pods" }, pending)),
      ),
    ),
    h(
      "span",
      { class: "account" },
      session && h("span", { class: "who" }, h("b", {}, session.user), h("span", { class: "quiet" }, session.server)),
      themeButton(),
      h("button", { type: "button", onclick: leave }, "Log out"),
    ),
  );
  // On a phone there is room for some of them only.
  top.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function themeButton() {
  const isDark = document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  return h("button", { type: "button", class: "theme", "aria-label": isDark ? "Light colours" : "Dark colours", onclick: () => setTheme(isDark ? "light" : "dark") }, isDark ? "☀" : "☾");
}

/** @param {string} theme */
function setTheme(theme) {
  localStorage.setItem("dray-theme", theme);
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("theme"));
  paintTop(current().view);
}

async function leave() {
  stop();
  stop = () => {};
  await logOut().catch(() => {});
  location.hash = "#/login";
  open();
}

document.addEventListener("summary", (event) => {
  const number = /** @type {CustomEvent} */ (event).detail.pending;
  if (number !== pending) {
    pending = number;
    paintTop(current().view);
  }
});
document.documentElement.dataset.theme = localStorage.getItem("dray-theme") ?? "";
whenLoggedOut(() => {
  if (current().view !== "login") {
    wanted = location.hash;
    hasEnded = true;
    location.hash = "#/login";
  }
});
window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return; // the link to the content
  open();
  byId("main").focus({ preventScroll: true });
});
open();
