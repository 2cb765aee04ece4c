// The server's HTTP routes, as this page calls them: by the session's cookie, with its CSRF token.
//
// The cookie belongs to the browser, not to the tab: another tab may log in as somebody else. So reads carry the token too, and the server
// answers 403 to whatever comes with another session's. Then it is looked who is logged in now: nothing is done or read as somebody else.

import { marked } from "./marks.js";

/** What went wrong, in words for people. `status` is 0 where no answer came. */
export class Problem extends Error {
  constructor(message, { status = 0, code = "unreachable", details } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** Who is logged in; `other` is who is so instead, since then. What to do when the session ends, and when it is somebody else's. */
export const session = { me: null, other: null, ended: () => {}, replaced: () => {} };

/** Whether the session carries a capability: one by a token may carry less than who is logged in. */
export const may = (capability) => session.me.capabilities?.includes(capability) ?? true;

/** What shows that a request is of this page and of its session. */
export const credentials = () => (session.me?.csrfToken ? { "X-Bubble-CSRF": session.me.csrfToken } : {});

export async function call(method, path, { body, text, key } = {}) {
  const headers = {};
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  if (sent !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const token = session.me?.csrfToken;
  let { answer, said } = await ask(method, path, headers, sent);
  if (answer.status === 403 && (await isRenewed(token))) ({ answer, said } = await ask(method, path, headers, sent));
  if (answer.status === 204) return null;
  if (answer.ok) return withReactions(readJson(said), said);
  if (answer.status === 401) session.ended();
  if (session.other) throw replaced();
  throw problemOf(answer.status, said);
}

async function ask(method, path, headers, body) {
  if (session.other) throw replaced();
  try {
    const answer = await fetch(path, { method, headers: { ...headers, ...credentials() }, body, cache: "no-store" });
    return { answer, said: await answer.text() };
  } catch {
    throw new Problem("The server cannot be reached.");
  }
}

/** Looks who is logged in. Whether it is who it was, in another session than the token's: then what came with that may be asked again. */
export async function isRenewed(token = session.me?.csrfToken) {
  if (!session.me || session.other) return false;
  const answer = await fetch("v1/whoami", { cache: "no-store" }).catch(() => null);
  if (answer?.status === 401) session.ended();
  const now = answer?.ok ? await answer.json().catch(() => null) : null;
  if (!now || session.other) return false;
  if (now.principalId === session.me.principalId) {
    session.me = now;
    return now.csrfToken !== token;
  }
  session.other = now;
  session.replaced();
  return false;
}

const replaced = () => new Problem(`You are now signed in as ${marked(session.other.displayName)} in this browser.`, { status: 403, code: "replaced" });

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

const NUMBER_KEY = /(?<=[{,]\s*)"(0|[1-9]\d*)"(?=\s*:)/g; // within a text, a quote has a backslash before it
const KEPT = "\u0000";

/** What was read, with its messages' reactions in their order: JavaScript puts names that are numbers first. */
export function withReactions(value, text) {
  if (!text.includes('"reactions"') || text.search(NUMBER_KEY) < 0) return value;
  const twin = JSON.parse(text.replace(NUMBER_KEY, '"\\u0000$1"'));
  const [messages, twins] = Array.isArray(value.messages) ? [value.messages, twin.messages] : [[value], [twin]];
  messages.forEach((message, index) => {
    const reactions = twins[index]?.metadata?.bubble?.reactions;
    if (reactions) message.metadata.bubble.reactions = new Map(Object.entries(reactions).map(([emoji, who]) => [emoji.replace(KEPT, ""), who]));
  });
  return value;
}

/** Emoji and who put it there, in the order in which they came. */
export const reactionsOf = ({ reactions = {} }) => (reactions instanceof Map ? [...reactions] : Object.entries(reactions));
