// Claims and pods: who waits comes first. A click shows why, node by node, and what would help.

import { get, watch } from "./api.js";
import { ago, fill, h, problemLine } from "./dom.js";
import { to } from "./routes.js";
import { downloads, table } from "./tables.js";

const AGAIN_MILLISECONDS = 5000;

/** @param {HTMLElement} main */
export function show(main) {
  const problem = problemLine();
  const body = h("div", {});
  fill(main, h("h1", { class: "unseen" }, "Claims and pods"), problem.element, body);
  return watch("waiting", {}, (view) => fill(body, lists(view)), problem.tell);
}

/** @param {any} view */
function lists(view) {
  const waits = view.pods.filter((/** @type {any} */ row) => row.state === "pending" || row.state === "gated");
  return [
    view.missing.length > 0 && h("p", { class: "notice" }, "You do not see everything: ", view.missing.join("; "), "."),
    table({
      name: "pending",
      caption: "Pending pods",
      empty: "No pod waits for a node.",
      columns: [
        { title: "Pod", value: (row) => row.name, show: (row) => h("a", { href: to("pod", { name: row.name }) }, row.name) },
        { title: "Waits for", value: (row) => ago(row.since) },
        { title: "Priority", value: (row) => row.priority, isNumber: true },
        { title: "Why", value: (row) => row.message, show: (row) => h("span", { class: "message" }, row.message || (row.state === "gated" ? "scheduling gates" : "not tried yet")) },
      ],
      rows: waits,
    }),
    table({
      name: "claims",
      caption: "Claims",
      empty: "There are no claims.",
      columns: [
        { title: "Claim", value: (row) => row.name, show: (row) => h("a", { href: to("claim", { name: row.name }) }, row.name) },
        { title: "State", value: (row) => row.state, show: (row) => h("span", { class: `pill ${row.state}` }, row.state) },
        { title: "Asks for", value: (row) => row.asks },
        { title: "Devices", value: (row) => row.devices.join(" "), show: (row) => devices(row.devices) },
        { title: "Used by", value: (row) => row.usedBy.join(" "), show: (row) => pods(row.usedBy) },
      ],
      rows: view.claims,
    }),
    table({
      name: "pods",
      caption: "Pods with devices",
      empty: "No pod uses devices.",
      columns: [
        { title: "Pod", value: (row) => row.name, show: (row) => h("a", { href: to("pod", { name: row.name }) }, row.name) },
        { title: "State", value: (row) => row.state, show: (row) => h("span", { class: `pill ${row.state}` }, row.state) },
        { title: "Node", value: (row) => row.node },
        { title: "Claims", value: (row) => row.claims.join(" ") },
      ],
      rows: view.pods.filter((/** @type {any} */ row) => row.node),
    }),
  ];
}

/**
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 */
export function explain(main, route) {
  const what = route.view === "pod" ? "pod" : "claim";
  const name = route.query.name ?? "";
  let isOver = false;
  let last = "";
  const body = h("div", { "aria-busy": "true" }, h("h1", {}, name), h("p", { class: "quiet" }, "Working it out …"));
  fill(main, body);
  look();
  const timer = setInterval(() => !document.hidden && look(), AGAIN_MILLISECONDS);
  return () => {
    isOver = true;
    clearInterval(timer);
  };

  async function look() {
    try {
      const picture = await get("explain", { [what]: name });
      const now = JSON.stringify(picture);
      if (!isOver && now !== last) fill(body, paint(picture, what, look));
      last = now;
    } catch (error) {
      if (!isOver) fill(body, h("h1", {}, name), h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
    body.setAttribute("aria-busy", "false");
  }
}

const STATUS = {
  scheduled: "is on a node",
  stuck: "is on a node and cannot start",
  fits: "fits",
  pending: "is pending",
  unjudged: "cannot be judged",
  allocated: "is allocated",
};

/**
 * @param {any} picture
 * @param {string} what
 * @param {() => void} again
 */
function paint(picture, what, again) {
  const status = STATUS[/** @type {keyof typeof STATUS} */ (picture.status)] ?? picture.status;
  return [
    h(
      "header",
      { class: "page-head" },
      h("p", { class: "crumbs" }, h("a", { href: to("waiting") }, "Claims and pods"), ` / ${what} / `),
      h("h1", {}, picture.subject),
      h("span", { class: `pill ${picture.status}` }, picture.node ? `${status}: ${picture.node}` : status),
      h("span", { class: "grow" }),
      h("button", { type: "button", onclick: again }, "Look again"),
    ),
    picture.message && h("p", { class: "lead" }, picture.message),
    picture.preemption && h("p", { class: "notice" }, picture.preemption),
    picture.notes.length > 0 && h("ul", {}, picture.notes.map((/** @type {string} */ note) => h("li", {}, note))),
    picture.has.length > 0 && table({
      name: "has",
      caption: "What it has",
      columns: [
        { title: "Claim", value: (row) => row.name, show: (row) => (row.name === picture.subject ? row.name : h("a", { href: to("claim", { name: row.name }) }, row.name)) },
        { title: "Asks for", value: (row) => row.asks },
        { title: "Devices", value: (row) => row.devices.join(" "), show: (row) => devices(row.devices, picture.node) },
        { title: "Used by", value: (row) => row.usedBy.join(" "), show: (row) => pods(row.usedBy) },
      ],
      rows: picture.has,
    }),
    picture.claims.map(claim),
    Object.keys(picture.unsuitable).length > 0 &&
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Nodes that do not take the pod, devices aside"),
        h("ul", {}, Object.entries(picture.unsuitable).map(([why, nodes]) => h("li", {}, h("b", {}, why), ": ", some(nodes)))),
      ),
    Object.keys(picture.passedOver).length > 0 &&
      h("p", { class: "quiet" }, "Take no pods: ", Object.entries(picture.passedOver).map(([node, why]) => `${node} (${why})`).join(", ")),
  ];
}

/** @param {string[]} names */
function pods(names) {
  return links(names, (name) => h("a", { href: to("pod", { name }) }, name));
}

/**
 * Without their drivers, whose names are long.
 * @param {string[]} ids
 * @param {string} [node]
 */
function devices(ids, node = "") {
  return ids.length ? links(ids, (id) => h("a", { href: to("device", { id, node }) }, id.split("/").slice(1).join("/"))) : "–";
}

/**
 * With commas in between.
 * @param {string[]} names
 * @param {(name: string) => HTMLElement} link
 */
function links(names, link) {
  return names.flatMap((one, index) => [index ? ", " : "", link(one)]);
}

/** @param {string[]} names */
function some(names) {
  return names.slice(0, 12).join(", ") + (names.length > 12 ? ` and ${names.length - 12} more` : "");
}

/** @param {any} one */
function claim(one) {
  return h(
    "section",
    { class: "card explanation", "aria-label": `Claim ${one.claim}` },
    h("h2", {}, "Claim ", one.claim),
    one.error && h("p", { class: "problem" }, one.error),
    one.requests.map((/** @type {any} */ request) => [
      h("h3", {}, `Request “${request.name}”: ${request.wish}`),
      h("p", { class: "quiet" }, request.totals, "."),
      request.remedies.length > 0 &&
        h("div", { class: "helps" }, h("h4", {}, "What would help"), h("p", {}, `It would fit on ${request.closest}`), h("ul", {}, request.remedies.map((/** @type {string} */ text) => h("li", {}, text)))),
      request.hopeless && h("div", { class: "notice" }, h("h4", {}, "What would help"), h("p", {}, request.hopeless)),
      strips(request),
    ]).flat(),
  );
}

/** @type {import("./tables.js").Column[]} */
const STRIPS = [
  { title: "Node", value: (row) => row.node },
  { title: "Devices", value: (row) => row.devices.map((/** @type {any} */ one) => `${one.name}: ${one.why}`).join("; "), show: (row) => h("span", { class: "cells" }, row.devices.map(cell)) },
  { title: "Match", value: (row) => row.matching, isNumber: true },
  { title: "Free", value: (row) => (row.matching ? row.free : "–"), isNumber: true },
  { title: "Short by", value: (row) => (row.fits ? "fits" : row.missing || "–"), isNumber: true },
  { title: "Blocked by", value: (row) => row.blockedBy },
];

/** @param {any} device */
function cell(device) {
  return h("span", { class: `cell check-${device.check || "none"}`, title: `${device.name}: ${device.why}` }, h("span", { class: "unseen" }, `${device.name}: ${device.why}. `));
}

/** @param {any} request */
function strips(request) {
  const [first, ...others] = STRIPS;
  return h(
    "div",
    { class: "scroll" },
    h("div", { class: "table-head" }, h("span", { class: "grow" }), downloads(`request-${request.name}`, STRIPS, request.nodes)),
    h(
      "table",
      { class: "strips" },
      h("thead", {}, h("tr", {}, STRIPS.map((column) => h("th", { scope: "col", class: column.isNumber ? "number" : null }, column.title)))),
      h(
        "tbody",
        {},
        request.nodes.map((/** @type {any} */ node) =>
          h(
            "tr",
            { class: node.fits ? "fits" : node.node === request.closest ? "closest" : null },
            h("th", { scope: "row" }, first.value(node), node.node === request.closest && h("span", { class: "tag" }, "closest")),
            others.map((column) => h("td", { class: column.isNumber ? "number" : null, "data-title": column.title }, column.show ? column.show(node) : column.value(node))),
          ),
        ),
      ),
    ),
    request.moreNodes > 0 && h("p", { class: "quiet" }, `and ${request.moreNodes} more nodes that are further from fitting.`),
  );
}
