// Elements from names, attributes and children. Text is put in as text: nothing that comes from a cluster becomes markup.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes */

/**
 * An element. Attributes that begin with "on" are listeners; those that are null or false are left out.
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "href") element.setAttribute("href", safeLink(String(value)));
    else if (key === "value" && "value" in element) /** @type {HTMLInputElement} */ (element).value = String(value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/**
 * Links lead to other views only.
 * @param {string} link
 */
function safeLink(link) {
  return link.startsWith("#") ? link : "#/fleet";
}

/**
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
function add(element, children) {
  for (const child of /** @type {Child[]} */ (children.flat(Infinity))) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Puts other children into an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/**
 * The place where a view says what is wrong: its element, and what shows a text there, or hides it with "".
 * @returns {{element: HTMLElement, tell: (text: string) => void}}
 */
export function problemLine() {
  const element = h("p", { class: "problem", role: "alert", hidden: true });
  return {
    element,
    tell: (text) => {
      element.hidden = !text;
      element.textContent = text;
    },
  };
}

/**
 * An element of the page that is always there.
 * @param {string} id
 */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * Says something to who listens to the page.
 * @param {string} text
 */
export function announce(text) {
  byId("announce").textContent = text;
}

/**
 * Says something to everybody, for some seconds.
 * @param {string} text
 * @param {boolean} [isBad]
 */
export function toast(text, isBad = false) {
  const shown = h("div", { class: isBad ? "toast bad" : "toast" }, text);
  byId("toasts").append(shown);
  setTimeout(() => shown.remove(), isBad ? 9000 : 4000);
}

/**
 * "3 devices", "1 pod".
 * @param {number} number
 * @param {string} noun
 */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * How long ago.
 * @param {string | null | undefined} time
 */
export function ago(time) {
  if (!time) return "–";
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/**
 * A moment as people of this browser write it, with the exact one on it.
 * @param {string | null | undefined} time
 */
export function moment(time) {
  if (!time) return h("span", {}, "–");
  return h("time", { datetime: time, title: time }, new Date(time).toLocaleTimeString());
}
