// The server's HTTP routes, as this page calls them: by the session's cookie, with its CSRF token.

/** What went wrong, in words for people. `status` is 0 where no answer came. */
export class Problem extends Error {
  constructor(message, { status = 0, code = "unreachable", details } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** Who is logged in, and what to do when the session ends. */
export const session = { me: null, ended: () => {} };

export async function call(method, path, { body, text, key } = {}) {
  const headers = {};
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  if (sent !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-Bubble-CSRF"] = session.me?.csrfToken ?? "";
  if (key) headers["Idempotency-Key"] = key;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: sent, cache: "no-store" });
  } catch {
    throw new Problem("The server cannot be reached.");
  }
  if (answer.status === 204) return null;
  const said = await answer.text().catch(() => "");
  if (answer.ok) return readJson(said);
  if (answer.status === 401) session.ended();
  throw problemOf(answer.status, said);
}

function problemOf(status, said) {
  try {
    const { message, code, details } = JSON.parse(said);
    return new Problem(message, { status, code, details });
  } catch {
    return new Problem(`The server answered ${status}.`, { status, code: "internal" });
  }
}

export const get = (path) => call("GET", path);
export const post = (path, body, options) => call("POST", path, { body, ...options });
export const put = (path, body) => call("PUT", path, { body });
export const patch = (path, body) => call("PATCH", path, { body });
export const remove = (path) => call("DELETE", path);

/** `v1/threads/{id}/…` */
export function threadPath(threadId, rest = "") {
  return `v1/threads/${encodeURIComponent(threadId)}${rest}`;
}

export function append(threadId, event) {
  return post(threadPath(threadId, "/events"), { principalId: session.me.principalId, ...event }, { key: crypto.randomUUID?.() ?? randomId() });
}

/** An id that nobody else makes; `crypto.randomUUID` is there under TLS only. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** JSON in which numbers that JavaScript cannot hold stay as they were written, where the browser lets them. */
export function readJson(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source ? kept(value, context.source) : value);
}

function kept(value, source) {
  return Number.isFinite(value) && Number(source) === value && (Number.isSafeInteger(value) || !Number.isInteger(value)) ? value : JSON.rawJSON(source);
}
