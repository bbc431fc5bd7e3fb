// Devices as squares on a canvas. Only what is in sight is drawn, and of what changes only the blocks that did.

import { announce, h } from "./dom.js";
import { HELD, ORDER, TAINTED, bitsAt, kindOf, words } from "./states.js";

/** @typedef {import("./fleet-model.js").FleetModel} FleetModel */
/** @typedef {import("./fleet-model.js").Block} Block */
/** @typedef {{block: Block, position: number}} Spot */

const SIZES = [34, 30, 26, 22, 20, 18, 16, 14, 12, 10, 8, 7, 6, 5, 4];
const HEADING = 30;
const LABEL = 15;
const LABELS_FROM = 12;
const PATTERNS_FROM = 8;
const MARGIN = 14;

export class HeatMap {
  /**
   * @param {FleetModel} model
   * @param {{onOpen: (spot: Spot) => void, onSelect: (spots: Spot[]) => void, isSelected: (id: string) => boolean, hasSelected: () => boolean}} listener
   */
  constructor(model, listener) {
    this.model = model;
    this.listener = listener;
    this.canvas = /** @type {HTMLCanvasElement} */ (
      h("canvas", {
        class: "map-canvas",
        tabindex: "0",
        role: "application",
        "aria-label": "Map of devices. Arrow keys move, Enter opens the device, Space chooses it.",
      })
    );
    this.spacer = h("div", { class: "map-spacer" });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.element = h("div", { class: "map" }, this.spacer, this.canvas, this.tip);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.cell = 12;
    this.total = 0;
    /** @type {Block[]} */
    this.order = [];
    /** @type {Set<Block>} */
    this.dirty = new Set();
    this.isAllDirty = true;
    this.frame = 0;
    this.frames = 0;
    /** @type {Spot | null} */
    this.focus = null;
    this.colours = this.readColours();
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.onScheme = () => {
      this.colours = this.readColours();
      this.draw();
    };
    this.listen();
  }

  listen() {
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const spot = this.at(event.offsetX, event.offsetY);
      if (!spot) return;
      this.focus = spot;
      if (event.shiftKey || event.ctrlKey || event.metaKey) this.listener.onSelect([spot]);
      else this.listener.onOpen(spot);
    });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("blur", () => this.draw());
    this.observer = new ResizeObserver(() => this.layOut());
    this.observer.observe(this.element);
    this.scheme.addEventListener("change", this.onScheme);
    document.addEventListener("theme", this.onScheme);
  }

  stop() {
    this.observer?.disconnect();
    this.scheme.removeEventListener("change", this.onScheme);
    document.removeEventListener("theme", this.onScheme);
    cancelAnimationFrame(this.frame);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    /** @param {string} name */
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      states: ORDER.map((one) => read(`state-${one.name}`)),
      marks: ORDER.map((one) => read(`mark-${one.name}`)),
      smallFree: read("small-free"),
      text: read("text"),
      quiet: read("quiet"),
      line: read("line"),
      accent: read("accent"),
      page: read("page"),
    };
  }

  /** Gives every block its place: the largest squares with which everything is in sight, if there are any. */
  layOut() {
    const width = this.element.clientWidth;
    const height = this.element.clientHeight;
    if (!width || !height) return;
    for (const size of SIZES) {
      this.cell = size;
      this.total = this.place(width);
      if (this.total <= height) break;
    }
    this.spacer.style.height = `${this.total}px`;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.scale = scale;
    this.draw();
  }

  /** @param {number} width */
  place(width) {
    const step = this.cell + 1;
    const hasLabels = this.cell >= LABELS_FROM;
    const gap = hasLabels ? 12 : Math.max(3, this.cell >> 1);
    const isGrouped = this.model.groups.length > 1 || this.model.groups.some((group) => group.name !== "");
    let y = MARGIN;
    this.order = [];
    for (const group of this.model.groups) {
      group.y = y;
      if (isGrouped) y += HEADING;
      let x = MARGIN;
      let tallest = 0;
      for (const block of group.blocks) {
        const number = block.positions.length;
        block.columns = Math.min(number, number > 32 ? 16 : 8, Math.max(1, Math.floor((width - 2 * MARGIN) / step)));
        block.w = Math.max(block.columns * step - 1, hasLabels ? 72 : 0);
        block.h = Math.ceil(number / block.columns) * step - 1 + (hasLabels ? LABEL : 0);
        if (x > MARGIN && x + block.w > width - MARGIN) {
          x = MARGIN;
          y += tallest + gap;
          tallest = 0;
        }
        block.x = x;
        block.y = y;
        x += block.w + gap;
        tallest = Math.max(tallest, block.h);
        this.order.push(block);
      }
      y += tallest + (isGrouped ? 14 : gap);
      group.height = y - group.y;
      group.counts = this.model.counts(group);
    }
    return y;
  }

  /**
   * Some blocks look different, or all do.
   * @param {Block[]} [changed]
   */
  draw(changed) {
    if (changed) for (const block of changed) this.dirty.add(block);
    else this.isAllDirty = true;
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.frames++;
        this.paint();
      });
    }
  }

  paint() {
    const top = this.element.scrollTop;
    const height = this.element.clientHeight;
    const pen = this.context;
    pen.setTransform(this.scale ?? 1, 0, 0, this.scale ?? 1, 0, 0);
    pen.translate(0, -top);
    if (this.isAllDirty) {
      pen.clearRect(0, top, this.canvas.width, height);
      this.paintHeadings(top, height);
      const seen = [];
      for (let index = this.firstBelow(top); index < this.order.length; index++) {
        const block = this.order[index];
        if (block.y > top + height) break;
        seen.push(block);
      }
      this.paintBlocks(seen);
    } else {
      const seen = [...this.dirty].filter((block) => block.y + block.h >= top && block.y <= top + height);
      for (const block of seen) pen.clearRect(block.x - 1, block.y - 1, block.w + 2, block.h + 2);
      this.paintBlocks(seen);
    }
    this.isAllDirty = false;
    this.dirty.clear();
  }

  /**
   * The first block that reaches below a line: rows of blocks come in order, so one may start a little earlier.
   * @param {number} top
   */
  firstBelow(top) {
    let low = 0;
    let high = this.order.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.order[middle].y + 400 < top) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * @param {number} top
   * @param {number} height
   */
  paintHeadings(top, height) {
    if (this.model.groups.length < 2 && this.model.groups.every((group) => group.name === "")) return;
    const pen = this.context;
    pen.textBaseline = "middle";
    for (const group of this.model.groups) {
      if (group.y + HEADING < top || group.y > top + height) continue;
      pen.font = "600 13px system-ui, sans-serif";
      pen.fillStyle = this.colours.text;
      const name = group.name || "(none)";
      pen.fillText(name, MARGIN, group.y + HEADING / 2);
      const after = pen.measureText(name).width + 12;
      pen.font = "12px system-ui, sans-serif";
      pen.fillStyle = this.colours.quiet;
      const parts = ORDER.map((one, index) => (group.counts[index] ? `${group.counts[index]} ${one.name}` : "")).filter(Boolean);
      pen.fillText(parts.reverse().join(" · "), MARGIN + after, group.y + HEADING / 2);
    }
  }

  /**
   * Kind by kind, since changing colours costs more than squares.
   * @param {Block[]} blocks
   */
  paintBlocks(blocks) {
    const pen = this.context;
    const step = this.cell + 1;
    const hasLabels = this.cell >= LABELS_FROM;
    /** @type {number[][]} */
    const squares = ORDER.map(() => []);
    for (const block of blocks) {
      const y = block.y + (hasLabels ? LABEL : 0);
      const { positions, row, columns } = block;
      for (let index = 0; index < positions.length; index++) {
        const bits = bitsAt(row.s, positions[index]);
        squares[kindOf(bits)].push(block.x + (index % columns) * step, y + Math.floor(index / columns) * step, bits);
      }
    }
    squares.forEach((list, kind) => this.paintKind(list, kind));
    if (hasLabels) {
      pen.font = "11px system-ui, sans-serif";
      pen.textBaseline = "top";
      pen.fillStyle = this.colours.quiet;
      for (const block of blocks) pen.fillText(this.fit(block.row.n || block.row.p, block.w), block.x, block.y);
    }
    if (this.focus || this.listener.hasSelected()) for (const block of blocks) this.paintOutlines(block);
  }

  /**
   * @param {number[]} list
   * @param {number} kind
   */
  paintKind(list, kind) {
    const pen = this.context;
    const size = this.cell;
    const name = ORDER[kind].name;
    // Small ones have no border to be told apart by.
    pen.fillStyle = size < PATTERNS_FROM && name === "free" ? this.colours.smallFree : this.colours.states[kind];
    for (let index = 0; index < list.length; index += 3) pen.fillRect(list[index], list[index + 1], size, size);
    if (size < PATTERNS_FROM) return;
    pen.fillStyle = pen.strokeStyle = this.colours.marks[kind];
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let index = 0; index < list.length; index += 3) {
      const x = list[index];
      const y = list[index + 1];
      if (name === "free") pen.rect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
      if (name === "tainted") {
        pen.moveTo(x, y + size);
        pen.lineTo(x + size, y);
        pen.moveTo(x, y + size / 2);
        pen.lineTo(x + size / 2, y);
        pen.moveTo(x + size / 2, y + size);
        pen.lineTo(x + size, y + size / 2);
      }
      if (name === "blocked") {
        pen.moveTo(x + size * 0.25, y + size / 2);
        pen.lineTo(x + size * 0.75, y + size / 2);
      }
    }
    pen.stroke();
    if (name === "leaving") {
      pen.beginPath();
      for (let index = 0; index < list.length; index += 3) {
        const x = list[index];
        const y = list[index + 1];
        pen.moveTo(x + size * 0.3, y + size * 0.2);
        pen.lineTo(x + size * 0.78, y + size / 2);
        pen.lineTo(x + size * 0.3, y + size * 0.8);
      }
      pen.fill();
    }
    if (name === "tainted") {
      pen.fillStyle = this.colours.states[ORDER.findIndex((one) => one.name === "held")];
      for (let index = 0; index < list.length; index += 3) {
        if (list[index + 2] & HELD && list[index + 2] & TAINTED) {
          pen.fillRect(list[index] + size * 0.28, list[index + 1] + size * 0.28, size * 0.44, size * 0.44);
        }
      }
    }
  }

  /** @param {Block} block */
  paintOutlines(block) {
    const pen = this.context;
    for (let index = 0; index < block.positions.length; index++) {
      const position = block.positions[index];
      const isFocus = this.focus?.block === block && this.focus.position === position && document.activeElement === this.canvas;
      if (!isFocus && !this.listener.isSelected(this.model.idOf(block.row, position) + "@" + block.row.n)) continue;
      const { x, y } = this.corner(block, index);
      pen.strokeStyle = isFocus ? this.colours.text : this.colours.accent;
      pen.lineWidth = 2;
      pen.strokeRect(x - 0.5, y - 0.5, this.cell + 1, this.cell + 1);
    }
  }

  /**
   * @param {Block} block
   * @param {number} index
   */
  corner(block, index) {
    const step = this.cell + 1;
    const y = block.y + (this.cell >= LABELS_FROM ? LABEL : 0);
    return { x: block.x + (index % block.columns) * step, y: y + Math.floor(index / block.columns) * step };
  }

  /**
   * @param {string} text
   * @param {number} width
   */
  fit(text, width) {
    if (this.context.measureText(text).width <= width) return text;
    let short = text;
    while (short.length > 1 && this.context.measureText(short + "…").width > width) short = short.slice(1);
    return "…" + short;
  }

  /**
   * What is at a place of the canvas.
   * @param {number} x
   * @param {number} y
   * @returns {Spot | null}
   */
  at(x, y) {
    const down = y + this.element.scrollTop;
    for (let index = this.firstBelow(down); index < this.order.length; index++) {
      const block = this.order[index];
      if (block.y > down) break;
      if (x < block.x || x > block.x + block.w || down > block.y + block.h) continue;
      const step = this.cell + 1;
      const top = block.y + (this.cell >= LABELS_FROM ? LABEL : 0);
      const column = Math.floor((x - block.x) / step);
      const place = Math.floor((down - top) / step) * block.columns + column;
      if (down < top || column >= block.columns || place >= block.positions.length) return null;
      return { block, position: block.positions[place] };
    }
    return null;
  }

  /**
   * Where the middle of a device is on the canvas, for who clicks there.
   * @param {string} id
   * @param {string} [node]
   */
  where(id, node = "") {
    for (const block of this.order) {
      if (node && block.row.n !== node) continue;
      const index = block.positions.findIndex((position) => this.model.idOf(block.row, position) === id);
      if (index < 0) continue;
      const { x, y } = this.corner(block, index);
      return { x: x + this.cell / 2, y: y + this.cell / 2 - this.element.scrollTop };
    }
    return null;
  }

  /** @param {Spot} spot */
  tell({ block, position }) {
    const name = this.model.nameOf(block.row, position);
    return `${name} on ${block.row.n || `pool ${block.row.p}`}: ${words(bitsAt(block.row.s, position))}`;
  }

  /** @param {MouseEvent} event */
  point(event) {
    const spot = this.at(event.offsetX, event.offsetY);
    this.tip.hidden = !spot;
    this.canvas.classList.toggle("over", Boolean(spot));
    if (!spot) return;
    this.tip.textContent = this.tell(spot);
    const left = Math.min(event.offsetX + 14, this.element.clientWidth - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${event.offsetY + this.element.scrollTop + 16}px`;
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (!this.order.length) return;
    const spot = this.focus && this.order.includes(this.focus.block) ? this.focus : null;
    if (event.key === "Enter" && spot) this.listener.onOpen(spot);
    else if (event.key === " " && spot) this.listener.onSelect([spot]);
    else if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") this.move(spot, event.key);
    else return;
    event.preventDefault();
  }

  /**
   * @param {Spot | null} spot
   * @param {string} key
   */
  move(spot, key) {
    let block = spot ? this.order.indexOf(spot.block) : 0;
    let index = spot ? spot.block.positions.indexOf(spot.position) : 0;
    if (spot) {
      if (key === "ArrowRight") index++;
      if (key === "ArrowLeft") index--;
      if (key === "ArrowDown") [block, index] = [block + 1, 0];
      if (key === "ArrowUp") [block, index] = [block - 1, 0];
      if (key === "Home") [block, index] = [0, 0];
      if (key === "End") [block, index] = [this.order.length - 1, 0];
      if (index >= spot.block.positions.length) [block, index] = [block + 1, 0];
      if (index < 0) [block, index] = [block - 1, Infinity];
    }
    block = Math.max(0, Math.min(block, this.order.length - 1));
    const found = this.order[block];
    const position = found.positions[Math.max(0, Math.min(index, found.positions.length - 1))];
    this.focus = { block: found, position };
    const view = this.element;
    if (found.y < view.scrollTop) view.scrollTop = found.y - HEADING;
    if (found.y + found.h > view.scrollTop + view.clientHeight) view.scrollTop = found.y + found.h - view.clientHeight + 8;
    announce(this.tell(this.focus));
    this.draw();
  }
}
