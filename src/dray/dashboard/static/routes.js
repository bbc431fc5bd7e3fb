// Every view has an address: #/view?parameters.

/** @typedef {{view: string, query: Record<string, string>, lists: URLSearchParams}} Route */

/** @returns {Route} */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const lists = new URLSearchParams(query);
  return { view: path || "fleet", query: Object.fromEntries(lists), lists };
}

/**
 * @param {string} view
 * @param {Record<string, string | string[]>} [query]
 */
export function to(view, query = {}) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== "") found.append(name, one);
  }
  const text = found.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

/**
 * Another address for the same view, without another entry in the history.
 * @param {string} address
 */
export function rename(address) {
  history.replaceState(null, "", address);
}
