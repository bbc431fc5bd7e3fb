// The fleet: a heat map of all devices, grouped and filtered, live.

import { follow } from "./api.js";
import { FleetModel } from "./fleet-model.js";
import { HeatMap } from "./heat-map.js";
import { count, fill, h, problemLine } from "./dom.js";
import { rename, to } from "./routes.js";
import { ORDER, bitsAt, words } from "./states.js";
import { table } from "./tables.js";

/**
 * Devices that are chosen, as driver/pool/device@node.
 * @type {Set<string>}
 */
export const chosen = new Set();

const nothing = () => {};

/**
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 */
export function show(main, route) {
  const model = new FleetModel();
  const map = new HeatMap(model, {
    onOpen: ({ block, position }) => {
      location.hash = to("device", { id: model.idOf(block.row, position), node: block.row.n });
    },
    onSelect: (spots) => {
      for (const { block, position } of spots) {
        const id = `${model.idOf(block.row, position)}@${block.row.n}`;
        if (!chosen.delete(id)) chosen.add(id);
      }
      paintChosen();
      map.draw();
    },
    isSelected: (id) => chosen.has(id),
    hasSelected: () => chosen.size > 0,
  });
  let by = route.query.by ?? "none";
  let cel = route.query.cel ?? "";
  let isTable = route.query.as === "table";
  let stop = nothing;

  const problem = problemLine();
  const notice = h("div", { class: "notices" });
  const totals = h("ul", { class: "legend", "aria-label": "Devices by state" });
  const grouping = /** @type {HTMLSelectElement} */ (h("select", { id: "by", onchange: () => regroup(grouping.value, cel) }));
  const filter = /** @type {HTMLInputElement} */ (
    h("input", { id: "cel", type: "search", value: cel, spellcheck: "false", autocomplete: "off", placeholder: 'device.attributes["gpu.example.com"].model == "H100"' })
  );
  const form = h(
    "form",
    {
      class: "bar",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        regroup(by, filter.value.trim());
      },
    },
    h("div", { class: "labelled" }, h("label", { for: "by" }, "Group by"), grouping),
    h("div", { class: "labelled" }, h("label", { for: "cel" }, "Filter (CEL)"), filter, h("button", { type: "submit" }, "Filter")),
    h("button", { type: "button", "aria-pressed": String(isTable), onclick: (/** @type {Event} */ event) => flip(/** @type {HTMLElement} */ (event.currentTarget)) }, "As a table"),
  );
  const selection = h("div", { class: "selection", hidden: true });
  const rows = h("div", { class: "rows" });
  const shown = h("p", { class: "quiet shown", role: "status" });
  const failing = h("p", { class: "notice failing", role: "status", hidden: true });
  fill(main, h("h1", { class: "unseen" }, "Fleet"), form, notice, totals, problem.element, selection, shown, failing, map.element, rows);
  paintView();
  paintChosen();
  connect();
  // For tests: where a device is on the canvas, and how often it was drawn.
  main.dataset.ready = "no";
  /** @type {any} */ (map.canvas).heatMap = map;
  return () => {
    stop();
    map.stop();
  };

  function address() {
    return to("fleet", { by: by === "none" ? "" : by, cel, as: isTable ? "table" : "" });
  }

  /**
   * @param {string} newBy
   * @param {string} newCel
   */
  function regroup(newBy, newCel) {
    by = newBy;
    cel = newCel;
    rename(address());
    connect();
  }

  /** @param {HTMLElement} button */
  function flip(button) {
    isTable = !isTable;
    button.setAttribute("aria-pressed", String(isTable));
    rename(address());
    paintView();
  }

  function connect() {
    stop();
    main.dataset.ready = "no";
    stop = follow("fleet", { by, cel }, onLine, problem.tell);
  }

  /** @param {any} line */
  function onLine(line) {
    if (line.type === "choices") paintChoices(line.choices);
    if (line.type === "summary") paintSummary(line);
    if (line.type !== "rows") return;
    const { isOther, changed } = model.apply(line);
    if (line.more) return;
    if (isOther) map.layOut();
    else {
      for (const group of model.groups) group.counts = model.counts(group);
      map.draw(changed);
    }
    if (isTable) paintTable();
    shown.textContent = tellShown();
    paintFailure();
    main.dataset.ready = "yes";
  }

  function tellShown() {
    if (model.rows.size === 0) return "There are no devices: no driver has published any, or you may not see them.";
    return cel ? `${count(model.shown, "device")} ${model.shown === 1 ? "matches" : "match"} the filter.` : "";
  }

  function paintFailure() {
    const { number, why } = model.failure;
    failing.hidden = number === 0;
    failing.textContent = number ? `The filter fails on ${count(number, "device")}, as it would in a claim: ${why}` : "";
  }

  /** @param {{by: string, title: string}[]} choices */
  function paintChoices(choices) {
    fill(grouping, choices.map((one) => h("option", { value: one.by }, one.title)));
    if (!choices.some((one) => one.by === by)) grouping.append(h("option", { value: by }, by));
    grouping.value = by;
  }

  /** @param {any} line */
  function paintSummary(line) {
    document.dispatchEvent(new CustomEvent("summary", { detail: line }));
    fill(
      totals,
      [...ORDER].reverse().map((one) =>
        h(
          "li",
          { title: one.told },
          h("span", { class: `swatch ${one.name}`, "aria-hidden": "true" }),
          h("b", { "data-state": one.name }, line.totals[one.name].toLocaleString("en")),
          " ",
          one.name === "free" && !line.seesAllClaims ? "not held by what you see" : one.name,
        ),
      ),
      h("li", { class: "of" }, `of ${count(line.totals.devices, "device")} on ${count(line.nodes, "node")}`),
    );
    fill(notice, line.missing.length > 0 && h("p", { class: "notice" }, "You do not see everything: ", line.missing.join("; "), "."));
  }

  function paintChosen() {
    selection.hidden = chosen.size === 0;
    const devices = [...chosen];
    fill(
      selection,
      h("b", {}, count(chosen.size, "device")),
      " chosen ",
      h("a", { class: "button primary", href: to("service", { device: devices }) }, "Take out of service …"),
      h("button", { type: "button", onclick: () => { chosen.clear(); paintChosen(); map.draw(); } }, "Clear"),
    );
  }

  function paintView() {
    map.element.hidden = isTable;
    rows.hidden = !isTable;
    if (isTable) paintTable();
    else map.layOut();
  }

  function paintTable() {
    const devices = [];
    for (const group of model.groups) {
      for (const { row, positions } of group.blocks) {
        for (const position of positions) {
          devices.push({
            device: model.idOf(row, position),
            name: model.nameOf(row, position),
            node: row.n,
            driver: row.d,
            pool: row.p,
            group: group.name,
            state: words(bitsAt(row.s, position)),
          });
        }
      }
    }
    fill(
      rows,
      table({
        name: "devices",
        caption: "Devices",
        columns: [
          { title: "Node", value: (row) => row.node },
          { title: "Device", value: (row) => row.name, show: (row) => h("a", { href: to("device", { id: row.device, node: row.node }) }, row.name) },
          { title: "State", value: (row) => row.state, show: (row) => h("span", { class: "state" }, row.state) },
          { title: "Group", value: (row) => row.group },
          { title: "Pool", value: (row) => row.pool },
          { title: "Driver", value: (row) => row.driver },
        ],
        rows: devices,
        empty: "No device matches.",
      }),
    );
  }
}
