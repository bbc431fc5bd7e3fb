// The way to the back end: the session, questions, streams. The key is kept where only this origin can read it.

const KEY = "dray-key";
const BASE = new URL("api/", document.baseURI).pathname;

export class Failure extends Error {
  /**
   * @param {number} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Called when nobody is logged in any more. */
let onLoggedOut = () => {};

/** @param {() => void} listener */
export function whenLoggedOut(listener) {
  onLoggedOut = listener;
}

export function hasKey() {
  return localStorage.getItem(KEY) !== null;
}

/** @param {Record<string, string>} shown */
export async function logIn(shown) {
  const answer = await ask("login", { method: "POST", body: shown });
  localStorage.setItem(KEY, answer.key);
}

export async function logOut() {
  try {
    await post("logout", {});
  } finally {
    localStorage.removeItem(KEY);
  }
}

/**
 * @param {string} path
 * @param {Record<string, string>} [query]
 */
export function get(path, query = {}) {
  return ask(path + search(query), {});
}

/**
 * @param {string} path
 * @param {any} body
 */
export function post(path, body) {
  return ask(path, { method: "POST", body });
}

/** @param {Record<string, string>} query */
function search(query) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return text ? `?${text}` : "";
}

/**
 * @param {string} path
 * @param {{method?: string, body?: any, signal?: AbortSignal}} options
 */
async function open(path, options) {
  /** @type {Record<string, string>} */
  const headers = {};
  const key = localStorage.getItem(KEY);
  if (key) headers["X-Dray-Key"] = key;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(BASE + path, {
    method: options.method ?? "GET",
    headers,
    body: options.body === undefined ? undefined : JSON.stringify(options.body),
    credentials: "same-origin",
    cache: "no-store",
    signal: options.signal,
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401 && path !== "login") {
    localStorage.removeItem(KEY);
    onLoggedOut();
  }
  throw new Failure(answer.status, said.error ?? answer.statusText);
}

/**
 * @param {string} path
 * @param {{method?: string, body?: any}} options
 */
async function ask(path, options) {
  return (await open(path, options)).json();
}

/**
 * Lines of JSON, again and again, until it is stopped.
 * @param {string} path
 * @param {Record<string, string>} query
 * @param {(line: any) => void} onLine
 * @param {(problem: string) => void} onProblem told when the connection is lost, and with "" when it is back
 * @returns {() => void} stops it
 */
export function follow(path, query, onLine, onProblem) {
  const control = new AbortController();
  run();
  return () => control.abort();

  async function run() {
    let pause = 500;
    while (!control.signal.aborted) {
      try {
        const answer = await open(path + search(query), { signal: control.signal });
        onProblem("");
        pause = 500;
        await read(answer);
      } catch (error) {
        if (control.signal.aborted) return;
        if (error instanceof Failure && (error.code === 401 || error.code === 404 || error.code === 422)) {
          onProblem(error.message);
          return;
        }
        onProblem(error instanceof Failure ? error.message : "the connection is lost; trying again");
      }
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, 8000);
    }
  }

  /** @param {Response} answer */
  async function read(answer) {
    const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (!line || control.signal.aborted) continue;
        const said = JSON.parse(line);
        if (said.type !== "alive" && said.type !== "again") onLine(said);
      }
    }
  }
}

/**
 * A view that is sent whole whenever it is different.
 * @param {string} view
 * @param {Record<string, string>} query
 * @param {(document: any) => void} onView
 * @param {(problem: string) => void} onProblem
 */
export function watch(view, query, onView, onProblem) {
  return follow(
    "watch",
    { view, ...query },
    (line) => (line.type === "gone" ? onProblem(line.error) : onView(line.view)),
    onProblem,
  );
}
