// One device: what it is, as published and as patched, what taints it, what it shares, who has it, what happened to it.

import { watch } from "./api.js";
import { ago, count, fill, h, moment, problemLine } from "./dom.js";
import { to } from "./routes.js";
import { table } from "./tables.js";
import { entries } from "./timeline.js";

/**
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 */
export function show(main, route) {
  const id = route.query.id ?? "";
  const node = route.query.node ?? "";
  const problem = problemLine();
  const body = h("div", {}, h("h1", {}, id.split("/").pop()));
  fill(main, problem.element, body);
  return watch(
    "device",
    { id, node },
    (view) => {
      problem.tell("");
      fill(body, page(view));
    },
    problem.tell,
  );
}

/** @param {any} view */
function page(view) {
  const device = view.device;
  const chosen = `${device.id}@${device.node ?? ""}`;
  return [
    h(
      "header",
      { class: "page-head" },
      h("p", { class: "crumbs" }, h("a", { href: to("fleet") }, "Fleet"), " / ", device.node ?? device.pool, " / "),
      h("h1", {}, device.name),
      h("span", { class: "states" }, device.state.map((/** @type {string} */ one) => h("span", { class: `pill ${one}` }, one))),
      h("span", { class: "grow" }),
      h("a", { class: "button", href: to("service", { device: chosen }) }, "Take out of service …"),
    ),
    device.blockedBy && h("p", { class: "notice" }, "Blocked: ", device.blockedBy, "."),
    view.missing.length > 0 && h("p", { class: "notice" }, "You do not see everything: ", view.missing.join("; "), "."),
    h(
      "dl",
      { class: "facts" },
      fact("Driver", device.driver),
      fact("Pool", device.pool),
      fact("Node", device.node ?? "reached from several nodes"),
      fact("Slice", device.slice),
    ),
    h("div", { class: "columns" }, holders(device.holders), taints(device.taints)),
    values(device.values),
    device.counters.length > 0 && partitions(device),
    entries("history", "History of the last hour", view.history, "Nothing happened to it in the last hour."),
  ];
}

/**
 * @param {string} name
 * @param {string} value
 */
function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

/** @param {any[]} list */
function holders(list) {
  return h(
    "section",
    { class: "card", "aria-label": "Holder" },
    h("h2", {}, "Held by"),
    list.length === 0 && h("p", { class: "empty" }, "Nobody holds it."),
    list.map((one) =>
      h(
        "div",
        { class: "holder" },
        h("a", { href: to("claim", { name: one.claim }) }, one.claim),
        one.since && h("span", { class: "quiet" }, ` for ${ago(one.since)}`),
        one.pods.length > 0 && h("p", {}, "used by ", one.pods.map((/** @type {string} */ pod, /** @type {number} */ index) => [index ? ", " : "", h("a", { href: to("pod", { name: pod }) }, pod)]).flat()),
        one.health.map((/** @type {string} */ text) => h("p", { class: "health" }, "Health: ", text)),
        one.conditions.map((/** @type {string} */ text) => h("p", { class: "quiet" }, text)),
      ),
    ),
  );
}

/** @param {any[]} list */
function taints(list) {
  return h(
    "section",
    { class: "card", "aria-label": "Taints" },
    h("h2", {}, "Taints"),
    list.length === 0 && h("p", { class: "empty" }, "None: no claim has to tolerate anything."),
    list.map((one) =>
      h(
        "div",
        { class: "taint" },
        h("code", {}, one.taint),
        h("p", { class: "quiet" }, one.rule ? ["by rule ", h("a", { href: to("service") }, one.rule)] : "published by its driver", one.since ? [" since ", moment(one.since)] : "", one.until ? [", until ", moment(one.until)] : ""),
        one.progress && h("p", {}, one.progress),
      ),
    ),
  );
}

/** @param {any[]} rows */
function values(rows) {
  return table({
    name: "values",
    caption: "Attributes and capacities",
    columns: [
      { title: "Name", value: (row) => row.name },
      { title: "Kind", value: (row) => row.kind },
      { title: "Published", value: (row) => row.published ?? "–", show: (row) => h("span", { class: row.patch ? "replaced" : "" }, row.published ?? "–") },
      { title: "In effect", value: (row) => row.effective ?? "–", show: (row) => h("b", {}, row.effective ?? "removed") },
      { title: "Patched by", value: (row) => row.patch ?? "", show: (row) => (row.patch ? [row.patch, row.author ? ` (${row.author})` : ""] : "") },
    ],
    rows,
  });
}

/** @param {any} device */
function partitions(device) {
  const { tree, more } = device.partitions;
  return h(
    "section",
    { class: "card", "aria-label": "Counters and partitions" },
    h("h2", {}, "Counters and partitions"),
    h("ul", { class: "meters" }, device.counters.map((/** @type {any} */ one) => h("li", {}, h("code", {}, `${one.counterSet} / ${one.counter}`), ` draws ${one.draws} of ${one.of}`))),
    tree.length > 0 && branch(device, tree),
    more > 0 && h("p", { class: "quiet" }, `and ${count(more, "more device")} that share its counters.`),
  );
}

/**
 * A list with lists in it.
 * @param {any} device
 * @param {any[]} tree each device after what it is a part of
 */
function branch(device, tree) {
  const root = h("ul", { class: "tree" });
  const lists = [root];
  for (const one of tree) {
    const address = to("device", { id: `${device.driver}/${device.pool}/${one.name}`, node: device.node ?? "" });
    const name = one.isOwn ? h("b", { "aria-current": "true" }, one.name) : h("a", { href: address }, one.name);
    const item = h("li", {}, name, " ", h("span", { class: "quiet" }, one.state));
    if (!lists[one.depth]) {
      lists[one.depth] = h("ul", { class: "tree" });
      lists[one.depth - 1].lastElementChild?.append(lists[one.depth]);
    }
    lists.length = one.depth + 1;
    lists[one.depth].append(item);
  }
  return root;
}
