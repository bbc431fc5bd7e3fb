// What happened in the last hour, and how the fleet was used since somebody looks on.

import { watch } from "./api.js";
import { chart } from "./chart.js";
import { ago, fill, h, moment, problemLine } from "./dom.js";
import { rename, to } from "./routes.js";
import { table } from "./tables.js";

const KINDS = ["allocation", "release", "eviction", "taint", "untaint", "node"];

/**
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 */
export function show(main, route) {
  let kind = route.query.kind ?? "";
  /** @type {any} */
  let last = null;
  const problem = problemLine();
  const body = h("div", {});
  const choice = /** @type {HTMLSelectElement} */ (
    h("select", { id: "kind", onchange: () => { kind = choice.value; rename(to("timeline", { kind })); if (last) fill(body, page(last, kind)); } }, h("option", { value: "" }, "everything"), KINDS.map((one) => h("option", { value: one }, one)))
  );
  choice.value = kind;
  fill(main, h("h1", { class: "unseen" }, "Timeline"), h("div", { class: "bar" }, h("label", { for: "kind" }, "Show"), choice), problem.element, body);
  return watch("timeline", {}, (view) => {
    last = view;
    fill(body, page(view, kind));
  }, problem.tell);
}

/**
 * Of all devices, in percent.
 * @param {any} totals
 * @param {string} state
 */
function share(totals, state) {
  return totals.devices ? (100 * totals[state]) / totals.devices : 0;
}

/**
 * @param {any} view
 * @param {string} kind
 */
function page(view, kind) {
  const list = kind ? view.entries.filter((/** @type {any} */ one) => one.kind === kind) : view.entries;
  return [
    view.missing.length > 0 && h("p", { class: "notice" }, "You do not see everything: ", view.missing.join("; "), "."),
    h(
      "div",
      { class: "columns" },
      h("section", { class: "card" }, h("h2", {}, "Utilisation"), chart(view.samples, (totals) => share(totals, "held"), "held", (totals) => `% of devices are held, ${share(totals, "free").toFixed(0)}% are free, ${share(totals, "blocked").toFixed(0)}% blocked`)),
      h("section", { class: "card" }, h("h2", {}, "Fragmentation"), chart(view.samples, (totals) => (totals.free ? (100 * (totals.free - totals.whole)) / totals.free : 0), "tainted", () => "% of free devices are on nodes that are not wholly free")),
    ),
    entries("timeline", "The last hour", list, "Nothing happened in the last hour."),
  ];
}

/**
 * @param {string} name
 * @param {string} caption
 * @param {any[]} list
 * @param {string} empty
 */
export function entries(name, caption, list, empty) {
  return table({
    name,
    caption,
    empty,
    columns: [
      { title: "Time", value: (row) => row.time, show: (row) => [moment(row.time), h("span", { class: "quiet" }, ` ${ago(row.time)} ago`)] },
      { title: "What", value: (row) => row.kind, show: (row) => h("span", { class: `pill ${row.kind}` }, row.kind) },
      { title: "Who", value: (row) => row.subject },
      { title: "Details", value: (row) => row.text },
    ],
    rows: list,
  });
}
