// A hub: its clusters, and why placements have the clusters that they have.

import { watch } from "./api.js";
import { count, fill, h, problemLine } from "./dom.js";
import { table } from "./tables.js";

/** @param {HTMLElement} main */
export function show(main) {
  const problem = problemLine();
  const body = h("div", {});
  fill(main, h("h1", { class: "unseen" }, "Placement"), problem.element, body);
  return watch("hub", {}, (view) => fill(body, page(view)), problem.tell);
}

/** @param {any} view */
function page(view) {
  const hub = view.hub;
  return [
    view.problem && h("p", { class: "notice" }, view.problem, "."),
    table({
      name: "clusters",
      caption: "Clusters",
      empty: "No cluster has joined.",
      columns: [
        { title: "Cluster", value: (row) => row.name },
        { title: "State", value: (row) => row.state, show: (row) => h("span", { class: `pill ${row.state.replaceAll(" ", "-")}` }, row.state) },
        { title: "Set", value: (row) => row.clusterSet },
        { title: "Free devices", value: (row) => devices(row) },
        { title: "Taints", value: (row) => row.taints.join(" "), show: (row) => row.taints.map((/** @type {string} */ one) => h("code", {}, one)) },
        { title: "Placements", value: (row) => row.placements, isNumber: true },
      ],
      rows: hub.clusters,
    }),
    hub.placements.length === 0 && h("p", { class: "empty" }, "There are no placements."),
    hub.placements.map((/** @type {any} */ one) =>
      h(
        "section",
        { class: "card" },
        h("h2", {}, one.name),
        h("p", { class: "lead" }, one.summary),
        one.problem && h("p", { class: "problem" }, one.problem),
        one.changesIn !== null && h("p", { class: "quiet" }, `May change by itself in ${Math.round(one.changesIn)} s.`),
        table({
          name: `placement-${one.name.replaceAll("/", "-")}`,
          caption: "Clusters and why",
          columns: [
            { title: "Cluster", value: (row) => row.cluster },
            { title: "Selected", value: (row) => (row.selected ? "yes" : "no"), show: (row) => h("span", { class: row.selected ? "pill free" : "pill" }, row.selected ? "yes" : "no") },
            { title: "Score", value: (row) => row.score ?? "–", isNumber: true },
            { title: "Why", value: (row) => row.why },
          ],
          rows: one.clusters,
        }),
      ),
    ),
    hub.morePlacements > 0 && h("p", { class: "quiet" }, `and ${count(hub.morePlacements, "more placement")}: dray explain placement/NAME tells of each.`),
  ];
}

/** @param {any} row */
function devices(row) {
  return Object.entries(row.devices).map(([name, [free, all]]) => `${name} ${free}/${all}`).join(", ") || "–";
}
