// At the door: a link that works once, or a token.

import { logIn } from "./api.js";
import { fill, h } from "./dom.js";
import { rename } from "./routes.js";

/**
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 * @param {() => void} onIn
 * @param {string} why what happened, empty if somebody just comes in
 */
export function show(main, route, onIn, why) {
  const problem = h("p", { class: "problem", role: "alert", hidden: !why }, why);
  const token = /** @type {HTMLInputElement} */ (h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false" }));
  const namespace = /** @type {HTMLInputElement} */ (h("input", { id: "namespace", autocomplete: "off", spellcheck: "false" }));
  const form = h(
    "form",
    { class: "card login", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); enter({ token: token.value.trim(), namespace: namespace.value.trim() }); } },
    h("h1", {}, "Log in to dray"),
    h("p", {}, "With a bearer token that the cluster knows. You see what its owner may see, and nothing else."),
    problem,
    h("div", { class: "field" }, h("label", { for: "token" }, "Token"), token),
    h("div", { class: "field" }, h("label", { for: "namespace" }, "Namespace, if you may see only one"), namespace),
    h("button", { type: "submit", class: "primary" }, "Log in"),
    h("p", { class: "quiet" }, "On the machine of the cluster: DIR/admin-token, or the link that dray up prints. From a kubeconfig: dray dashboard. For a ServiceAccount: kubectl create token NAME."),
  );
  fill(main, form);
  const code = route.query.code ?? "";
  if (code) {
    rename("#/login"); // the code works once, and need not stay in the history
    enter({ code });
  } else token.focus();
  return () => {};

  /** @param {Record<string, string>} shown */
  async function enter(shown) {
    problem.hidden = true;
    try {
      await logIn(shown);
      onIn();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error instanceof Error ? error.message : String(error);
    }
  }
}
