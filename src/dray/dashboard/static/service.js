// Taking devices out of service: choose, see who is hit, apply, follow, confirm, stop, undo.

import { Failure, get, post, watch } from "./api.js";
import { chosen } from "./fleet.js";
import { ago, count, fill, h, moment, problemLine, toast } from "./dom.js";
import { rename, to } from "./routes.js";
import { table } from "./tables.js";

const EFFECTS = [
  ["NoExecute", "NoExecute: pods leave, and nobody new comes"],
  ["NoSchedule", "NoSchedule: nobody new comes"],
  ["None", "None: only to look"],
];
const AGAIN_MILLISECONDS = 5000;

/**
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 */
export function show(main, route) {
  const rules = h("div", {});
  const problem = problemLine();
  const making = h("div", {});
  fill(main, h("h1", {}, "Out of service"), making, problem.element, rules);
  const stopMaking = make(making, route);
  const stop = watch("rules", {}, (view) => fill(rules, list(view)), problem.tell);
  return () => {
    stop();
    stopMaking();
  };
}

/** @param {any} view */
function list(view) {
  return [
    view.stopped && h("p", { class: "notice" }, view.stopped[0].toUpperCase(), view.stopped.slice(1), "."),
    view.missing.length > 0 && h("p", { class: "notice" }, "You do not see everything: ", view.missing.join("; "), "."),
    table({
      name: "rules",
      caption: "Rules that taint devices",
      empty: "No rule taints a device. Choose devices on the map (Shift and click, or Space), or select them here.",
      columns: [
        { title: "Rule", value: (row) => row.name },
        { title: "Taint", value: (row) => row.taint, show: (row) => h("code", {}, row.taint) },
        { title: "Devices", value: (row) => row.devices, isNumber: true },
        { title: "In use", value: (row) => row.inUse, isNumber: true },
        { title: "Since", value: (row) => row.since ?? "", show: (row) => [ago(row.since), row.until ? [" until ", moment(row.until)] : ""].flat() },
        { title: "Progress", value: (row) => row.held || row.progress, show: progress },
        { title: "", value: () => "", show: actions },
      ],
      rows: view.rules,
    }),
    view.nodes.length > 0 &&
      table({
        name: "nodes",
        caption: "Nodes that pods have to leave",
        columns: [
          { title: "Node", value: (row) => row.name },
          { title: "Taints", value: (row) => row.taints.join(", "), show: (row) => row.taints.map((/** @type {string} */ one) => h("code", {}, one)) },
          { title: "Pods", value: (row) => row.pods, isNumber: true },
          { title: "Progress", value: (row) => row.held || row.progress, show: progress },
          { title: "", value: () => "", show: nodeActions },
        ],
        rows: view.nodes,
      }),
    view.pools.length > 0 &&
      table({
        name: "pools",
        caption: "Pools whose drivers have pods leave",
        columns: [
          { title: "Pool", value: (row) => row.pool },
          { title: "Taints", value: (row) => row.taints.join(", "), show: (row) => row.taints.map((/** @type {string} */ one) => h("code", {}, one)) },
          { title: "Pods", value: (row) => row.pods, isNumber: true },
          { title: "Progress", value: (row) => row.held, show: progress },
          { title: "", value: () => "", show: poolActions },
        ],
        rows: view.pools,
      }),
  ];
}

/** @param {any} row */
function progress(row) {
  if (row.held) return h("span", { class: "held-back" }, h("b", {}, "Held: "), row.held);
  return h("span", { class: row.inProgress ? "running" : "" }, row.progress || "–");
}

/**
 * @param {string} path
 * @param {any} what
 * @param {string} done
 */
function act(path, what, done) {
  return async (/** @type {Event} */ event) => {
    const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
    button.disabled = true;
    try {
      await post(path, what);
      toast(done);
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), true);
    }
    button.disabled = false;
  };
}

/** @param {any} row */
function nodeActions(row) {
  const node = { name: row.name, kind: "node" };
  return h(
    "span",
    { class: "actions" },
    row.held && h("button", { type: "button", class: "danger", onclick: act("confirm", node, `${row.name}: confirmed, its pods leave.`) }, "Confirm"),
    h("button", { type: "button", onclick: act("stop", node, `${row.name}: stopped, nobody else leaves for its taints.`) }, "Stop"),
  );
}

/** @param {any} row */
function poolActions(row) {
  const slice = { name: row.name, kind: "slice" };
  return h(
    "span",
    { class: "actions" },
    h("button", { type: "button", class: "danger", onclick: act("confirm", slice, `${row.pool}: confirmed, its pods leave.`) }, "Confirm"),
  );
}

/** @param {any} row */
function actions(row) {
  const rule = { name: row.name };
  return h(
    "span",
    { class: "actions" },
    row.held && h("button", { type: "button", class: "danger", onclick: act("confirm", rule, `${row.name}: confirmed, its pods leave.`) }, "Confirm"),
    (row.effect === "NoExecute" || row.drained) && h("button", { type: "button", onclick: act("stop", rule, `${row.name}: stopped, nobody else leaves.`) }, "Stop"),
    h("button", { type: "button", onclick: act("undo", rule, `${row.name} is gone: its devices are back in service.`) }, "Put back"),
  );
}

/**
 * @param {string} id
 * @param {string} label
 * @param {HTMLElement} input
 */
function field(id, label, input) {
  return h("div", { class: "field" }, h("label", { for: id }, label), input);
}

/**
 * @param {string} id
 * @param {string} value
 * @param {string} [placeholder]
 */
function textField(id, value, placeholder = "") {
  return /** @type {HTMLInputElement} */ (h("input", { id, value, placeholder, autocomplete: "off", spellcheck: "false" }));
}

/**
 * The form.
 * @param {HTMLElement} main
 * @param {import("./routes.js").Route} route
 */
function make(main, route) {
  const devices = route.lists.getAll("device");
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  let round = 0;
  /** @type {any} */
  let seen = null;
  const node = textField("node", route.query.node ?? "", "node-1");
  const deviceClass = textField("class", route.query.class ?? "", "gpu.example.com");
  const cel = textField("select-cel", route.query.cel ?? "", "device.attributes[…]");
  const key = textField("key", route.query.key ?? "maintenance");
  const value = textField("value", route.query.value ?? "");
  const effect = /** @type {HTMLSelectElement} */ (h("select", { id: "effect" }, EFFECTS.map(([name, told]) => h("option", { value: name }, told))));
  effect.value = route.query.effect ?? "NoExecute";
  const rate = textField("rate", route.query.rate ?? "", "10");
  rate.inputMode = "numeric";
  const hours = textField("hours", route.query.hours ?? "", "until it is put back");
  hours.inputMode = "numeric";
  const preview = h("div", { class: "preview", "aria-live": "polite" });
  const form = h(
    "form",
    { class: "card take", "aria-label": "Take devices out of service", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); look(true); } },
    h("h2", {}, "Take devices out of service"),
    devices.length > 0
      ? h("p", {}, h("b", {}, count(devices.length, "device")), ": ", h("span", { class: "chosen" }, devices.map((one) => h("code", {}, short(one)))))
      : h("div", { class: "fields" }, field("node", "Node", node), field("class", "Device class", deviceClass), field("select-cel", "CEL", cel)),
    h("div", { class: "fields" }, field("key", "Taint key", key), field("value", "Value", value), field("effect", "Effect", effect), field("rate", "Evictions per second", rate), field("hours", "Hours", hours)),
    h("button", { type: "submit", class: "primary" }, "Preview"),
    preview,
  );
  fill(main, form);
  getRights();
  if (devices.length || route.query.node || route.query.class || route.query.cel) look(false);
  return () => {
    round++;
    clearInterval(timer);
  };

  async function getRights() {
    const session = await get("session").catch(() => null);
    if (session && !session.mayTaint) form.prepend(h("p", { class: "notice" }, "You may look at previews; writing rules is not among your rights."));
  }

  function wish() {
    /** @type {any[]} */
    let selections = devices.map(selection);
    if (!devices.length) {
      const one = { node: node.value.trim(), class: deviceClass.value.trim(), cel: cel.value.trim() ? [cel.value.trim()] : [] };
      selections = [Object.fromEntries(Object.entries(one).filter(([, it]) => it.length))];
    }
    return {
      selections,
      key: key.value.trim(),
      value: value.value.trim(),
      effect: effect.value,
      rate: rate.value.trim() ? Number(rate.value) : null,
      hours: hours.value.trim() ? Number(hours.value) : null,
    };
  }

  /** @param {boolean} isAsked */
  async function look(isAsked) {
    const asked = wish();
    const own = ++round;
    clearInterval(timer);
    if (isAsked) {
      rename(to("service", { device: devices, node: node.value, class: deviceClass.value, cel: cel.value, key: asked.key, value: asked.value, effect: asked.effect, rate: rate.value, hours: hours.value }));
      fill(preview, h("p", { class: "quiet" }, "Looking who would be hit …"));
    }
    await refresh();
    if (own === round) timer = setInterval(refresh, AGAIN_MILLISECONDS);

    async function refresh() {
      try {
        const found = await post("preview", asked);
        if (own !== round || found.digest === seen?.digest && preview.querySelector(".result")) return;
        seen = found;
        fill(preview, result(found, asked));
      } catch (error) {
        if (own === round) fill(preview, h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
        if (error instanceof Failure) clearInterval(timer);
      }
    }
  }

  /**
   * @param {any} found
   * @param {any} asked
   */
  function result(found, asked) {
    const pods = found.pods ?? [];
    const hit = (found.devices ?? []).length;
    const typed = textField("typed", "", String(hit));
    const guard = found.evicts ? found.guard : null;
    const isMany = Boolean(found.isBroad || guard?.isOver);
    const button = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: "danger", disabled: isMany, onclick: apply }, `Apply to ${count(hit, "device")}`));
    typed.addEventListener("input", () => (button.disabled = typed.value.trim() !== String(hit)));
    return h(
      "div",
      { class: "result" },
      h("p", { class: "lead" }, found.evicts ? `${count(pods.length, "pod")} would leave ${count(hit, "device")}` : `Nobody leaves; with NoExecute ${count(pods.length, "pod")} would`, found.finished && pods.length ? [", the last one at ", moment(found.finished)] : "", "."),
      (found.notes ?? []).length > 0 && h("ul", { class: "notice" }, found.notes.map((/** @type {string} */ note) => h("li", {}, note))),
      (found.protected ?? []).length > 0 && h("p", { class: "quiet" }, `Stay, because they tolerate it: ${found.protected.join(", ")}.`),
      pods.length > 0 &&
        table({
          name: "leaving",
          caption: "Who leaves",
          columns: [
            { title: "Pod", value: (row) => row.pod, show: (row) => h("a", { href: to("pod", { name: row.pod }) }, row.pod) },
            { title: "Owner", value: (row) => row.owner ?? "" },
            { title: "Priority", value: (row) => row.priority ?? 0, isNumber: true },
            { title: "Leaves at", value: (row) => row.expected ?? row.due ?? "", show: (row) => moment(row.expected ?? row.due) },
            { title: "Disruption budget", value: (row) => (row.budget ? `${row.budget.name}: ${Math.max(0, Math.min(row.budget.allowed ?? 0, row.budget.needed ?? 0))} of ${row.budget.needed ?? 0} allowed` : "none") },
            { title: "Fits elsewhere", value: (row) => (elsewhere(row)) },
          ],
          rows: pods,
        }),
      guard && h("p", { class: guard.isOver ? "notice" : "quiet" }, `Guard: ${guard.pods ?? 0} of ${guard.of ?? 0} pods would leave; ${count(guard.allowed ?? 0, "pod")} may without being confirmed (limit ${guard.limit}).`, guard.isOver ? " They stay until somebody presses Confirm at the rule below." : ""),
      isMany && h("div", { class: "field" }, h("label", { for: "typed" }, `${found.isBroad ? "This may reach devices all over the cluster." : "More pods leave than the guard's limit."} Type ${hit} to go on`), typed),
      button,
    );

    async function apply() {
      button.disabled = true;
      try {
        const done = await post("apply", { ...asked, expected: found.digest });
        toast(`Written: ${done.rules.join(", ")}`);
        chosen.clear();
        round++;
        clearInterval(timer);
        fill(preview, h("p", { class: "result done" }, "Applied: ", done.rules.join(", "), ". Follow it below."));
        rename(to("service"));
      } catch (error) {
        toast(error instanceof Error ? error.message : String(error), true);
        button.disabled = false;
        seen = null;
        if (error instanceof Failure && error.code === 422) look(false);
      }
    }
  }
}

/** @param {any} pod */
function elsewhere(pod) {
  if (pod.fits === true) return `yes: ${[pod.fitsOn, ...(pod.alsoOn ?? [])].filter(Boolean).join(", ")}`;
  if (pod.victims?.length) {
    const more = pod.victims.length - 5;
    return `no, and makes pods of lower priority go: ${pod.victims.slice(0, 5).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  }
  if (pod.fits === false) return pod.whyNot ? `no: ${pod.whyNot}` : "no";
  return pod.whyNot ? `not known: ${pod.whyNot}` : "not tried";
}

/**
 * driver/pool/device@node as a selection.
 * @param {string} device
 */
function selection(device) {
  const [id, node = ""] = device.split("@", 2);
  const parts = id.split("/");
  const found = { driver: parts[0], pool: parts.slice(1, -1).join("/"), device: parts[parts.length - 1] };
  return node ? { ...found, node } : found;
}

/** @param {string} device */
function short(device) {
  const [id, node = ""] = device.split("@", 2);
  const name = id.split("/").pop() ?? id;
  return node ? `${node}/${name}` : id;
}
