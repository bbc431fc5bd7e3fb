// A curve over time, as an SVG.

import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 120;

/**
 * @param {{time: string, totals: any}[]} samples
 * @param {(totals: any) => number} value from 0 to 100
 * @param {string} colour
 * @param {(totals: any) => string} told what follows the number
 */
export function chart(samples, value, colour, told) {
  if (samples.length < 2) return h("p", { class: "empty" }, "The curve begins when somebody looks: wait some seconds.");
  const first = Date.parse(samples[0].time);
  const length = Math.max(1, Date.parse(samples[samples.length - 1].time) - first);
  const points = samples.map((one) => [((Date.parse(one.time) - first) / length) * WIDTH, HEIGHT - (value(one.totals) / 100) * HEIGHT]);
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" L");
  const latest = samples[samples.length - 1].totals;
  const now = value(latest);
  const text = told(latest);
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("class", `chart ${colour}`);
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${now.toFixed(0)}${text}`);
  const area = document.createElementNS(SVG, "path");
  area.setAttribute("d", `M0,${HEIGHT} L${line} L${WIDTH},${HEIGHT} Z`);
  area.setAttribute("class", "area");
  const curve = document.createElementNS(SVG, "path");
  curve.setAttribute("d", `M${line}`);
  curve.setAttribute("class", "curve");
  picture.append(area, curve);
  const minutes = Math.max(1, Math.round(length / 60000));
  return h("div", {}, h("p", { class: "big" }, h("b", {}, `${now.toFixed(0)}`), text), picture, h("p", { class: "quiet ends" }, h("span", {}, `${minutes} min ago`), h("span", {}, "now")));
}
