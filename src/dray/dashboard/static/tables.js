// Tables: sorted by a click on a heading, cut where they get long (namespaces share the room), downloaded as CSV and JSON.

import { count, h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */
/**
 * @typedef {object} Column
 * @property {string} title nothing over buttons: by these nobody sorts
 * @property {(row: any) => string | number} value for sorting, CSV, and to show if `show` is not given
 * @property {(row: any) => Child | Child[]} [show]
 * @property {boolean} [isNumber]
 */

const SHOWN = 300;
const sorting = new Map();

/**
 * @param {{name: string, caption: string, columns: Column[], rows: any[], empty?: string, tools?: Child[]}} options
 * @returns {HTMLElement}
 */
export function table({ name, caption, columns, rows, empty = "None.", tools = [] }) {
  const body = h("tbody", {});
  const heads = columns.map((column, index) =>
    h(
      "th",
      { scope: "col", class: column.isNumber ? "number" : null },
      column.title ? h("button", { type: "button", class: "sort", onclick: () => sort(index) }, column.title) : h("span", { class: "unseen" }, "Actions"),
    ),
  );
  const more = h("p", { class: "quiet" });
  const element = h(
    "section",
    { class: "table", id: `table-${name}`, "aria-label": caption },
    h(
      "div",
      { class: "table-head" },
      h("h2", {}, caption, " ", h("span", { class: "count" }, rows.length.toLocaleString("en"))),
      h("span", { class: "grow" }),
      ...tools,
      downloads(name, columns, rows),
    ),
    rows.length ? h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)) : h("p", { class: "empty" }, empty),
    more,
  );
  paint();
  return element;

  /** @param {number} index */
  function sort(index) {
    const now = sorting.get(name);
    sorting.set(name, { index, down: now?.index === index ? !now.down : false });
    paint();
  }

  function paint() {
    const by = sorting.get(name);
    let ordered = rows;
    if (by) {
      const value = columns[by.index].value;
      ordered = [...rows].sort((one, other) => {
        const [a, b] = [value(one), value(other)];
        return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      });
      if (by.down) ordered.reverse();
    }
    heads.forEach((head, index) => columns[index].title && head.setAttribute("aria-sort", by?.index !== index ? "none" : by.down ? "descending" : "ascending"));
    body.replaceChildren(
      ...share(ordered, SHOWN).map((row) =>
        h(
          "tr",
          {},
          columns.map((column) =>
            h("td", { class: column.isNumber ? "number" : null, "data-title": column.title }, column.show ? column.show(row) : column.value(row)),
          ),
        ),
      ),
    );
    more.textContent = rows.length > SHOWN ? `${count(rows.length - SHOWN, "more row")}: download to see them all.` : "";
  }
}

/**
 * The first rows of each namespace, in their order: who has many hides nobody who has few.
 * @param {any[]} rows
 * @param {number} most
 * @returns {any[]}
 */
export function share(rows, most) {
  if (rows.length <= most) return rows;
  /** @type {Map<string, number>} */
  const seen = new Map();
  const ranks = rows.map((row) => {
    const namespace = String(row.name ?? row.subject ?? "").split("/")[0];
    const rank = seen.get(namespace) ?? 0;
    seen.set(namespace, rank + 1);
    return rank;
  });
  const chosen = [...rows.keys()].sort((one, other) => ranks[one] - ranks[other] || one - other).slice(0, most);
  return chosen.sort((one, other) => one - other).map((index) => rows[index]);
}

/**
 * Buttons that save all rows; none if there are no rows.
 * @param {string} name
 * @param {Column[]} columns
 * @param {any[]} rows
 * @returns {Child[]}
 */
export function downloads(name, columns, rows) {
  if (!rows.length) return [];
  return [
    h("button", { type: "button", class: "small", onclick: () => save(`${name}.csv`, "text/csv", csv(columns, rows)) }, "CSV"),
    h("button", { type: "button", class: "small", onclick: () => save(`${name}.json`, "application/json", JSON.stringify(rows, null, 2)) }, "JSON"),
  ];
}

/**
 * @param {Column[]} columns
 * @param {any[]} rows
 */
export function csv(columns, rows) {
  const told = columns.filter((column) => column.title);
  return [told.map((column) => cell(column.title)), ...rows.map((row) => told.map((column) => cell(column.value(row))))]
    .map((line) => line.join(","))
    .join("\r\n");
}

/**
 * A spreadsheet must not take what is in a cell for a formula.
 * @param {string | number} value
 */
function cell(value) {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function save(name, type, text) {
  const link = /** @type {HTMLAnchorElement} */ (document.createElement("a"));
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `dray-${name}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
