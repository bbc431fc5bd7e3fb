// The fleet as the page knows it: rows by key, put into groups. A change of states alone leaves the order as it is.

import { ORDER, bitsAt, kindOf } from "./states.js";

/**
 * @typedef {object} Row
 * @property {string} k key
 * @property {string} d driver
 * @property {string} p pool
 * @property {string} n node
 * @property {string} s states, a letter for each device
 * @property {number} c which names
 * @property {string | string[]} g group, of all or of each device
 * @property {string} [m] of which devices the filter is true: 1, 0, or ! where it fails
 * @property {string} [w] why it fails on the first of them
 * @property {string[]} [names]
 */
/** @typedef {{row: Row, positions: number[], x: number, y: number, w: number, h: number, columns: number}} Block */
/** @typedef {{name: string, blocks: Block[], y: number, height: number, counts: number[]}} Group */

const natural = new Intl.Collator("en", { numeric: true });

export class FleetModel {
  constructor() {
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {string[][]} */
    this.nameSets = [];
    /** @type {Group[]} */
    this.groups = [];
    /** @type {Map<string, Block[]>} */
    this.blocksOf = new Map();
  }

  /**
   * @param {{rows: Row[], gone: string[], all: boolean, more: boolean}} line
   * @returns {{isOther: boolean, changed: Block[]}} whether blocks came or went; else which look different
   */
  apply(line) {
    let isOther = line.all;
    /** @type {Block[]} */
    const changed = [];
    if (line.all) this.rows.clear();
    for (const key of line.gone) isOther = this.rows.delete(key) || isOther;
    for (const row of line.rows) {
      if (row.names) this.nameSets[row.c] = row.names;
      const known = this.rows.get(row.k);
      if (!known) {
        this.rows.set(row.k, row);
        isOther = true;
        continue;
      }
      if (known.c !== row.c || known.m !== row.m || String(known.g) !== String(row.g)) isOther = true;
      Object.assign(known, row);
      changed.push(...(this.blocksOf.get(row.k) ?? []));
    }
    if (isOther && !line.more) this.arrange();
    return { isOther, changed };
  }

  /** Puts all rows into groups, and groups into order. */
  arrange() {
    /** @type {Map<string, Block[]>} */
    const groups = new Map();
    this.blocksOf = new Map();
    for (const row of this.rows.values()) {
      /** @type {Map<string, number[]>} */
      const parts = new Map();
      for (let position = 0; position < row.s.length; position++) {
        if (row.m !== undefined && row.m[position] !== "1") continue;
        const group = typeof row.g === "string" ? row.g : row.g[position];
        const part = parts.get(group);
        if (part) part.push(position);
        else parts.set(group, [position]);
      }
      for (const [group, positions] of parts) {
        const block = { row, positions, x: 0, y: 0, w: 0, h: 0, columns: 1 };
        const blocks = groups.get(group);
        if (blocks) blocks.push(block);
        else groups.set(group, [block]);
        const own = this.blocksOf.get(row.k);
        if (own) own.push(block);
        else this.blocksOf.set(row.k, [block]);
      }
    }
    this.groups = [...groups].map(([name, blocks]) => ({ name, blocks, y: 0, height: 0, counts: [] }));
    this.groups.sort((one, other) => natural.compare(one.name, other.name));
    for (const group of this.groups) {
      group.blocks.sort(
        (one, other) => natural.compare(one.row.n || one.row.p, other.row.n || other.row.p) || natural.compare(one.row.k, other.row.k),
      );
    }
  }

  /**
   * How many devices of a group are shown as what.
   * @param {Group} group
   */
  counts(group) {
    const counts = ORDER.map(() => 0);
    for (const block of group.blocks) {
      for (const position of block.positions) counts[kindOf(bitsAt(block.row.s, position))]++;
    }
    return counts;
  }

  /**
   * @param {Row} row
   * @param {number} position
   */
  nameOf(row, position) {
    return this.nameSets[row.c]?.[position] ?? "";
  }

  /**
   * driver/pool/device
   * @param {Row} row
   * @param {number} position
   */
  idOf(row, position) {
    return `${row.d}/${row.p}/${this.nameOf(row, position)}`;
  }

  /** On how many devices the filter fails, and on the first why. */
  get failure() {
    let number = 0;
    let why = "";
    for (const row of this.rows.values()) {
      if (!row.w) continue;
      number += [...(row.m ?? "")].filter((letter) => letter === "!").length;
      why = why || row.w;
    }
    return { number, why };
  }

  get shown() {
    let number = 0;
    for (const group of this.groups) for (const block of group.blocks) number += block.positions.length;
    return number;
  }
}
