// Writing: a message is a run of its own, appended in one batch. What could not be sent stays, and is sent again with the same key,
// so that it is in the log once, whatever became of the first attempt.
import { call, randomId, session, threadPath } from "./api.js";
import { $, make, setText } from "./dom.js";

const PIECE = 100_000; // characters of one event; an event may have a megabyte

const draftKey = (threadId) => `bubble:draft:${session.me.principalId}:${threadId}`;
const outboxKey = (threadId) => `bubble:outbox:${session.me.principalId}:${threadId}`;

export class Composer {
  constructor({ onSend }) {
    this.form = $("composer");
    this.field = $("text");
    this.list = $("outbox");
    this.onSend = onSend;
    this.threadId = null;
    this.sent = [];
    this.line = Promise.resolve();
    this.field.addEventListener("input", () => this.typed());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  /** Another thread: its draft, and what of it is still to be sent. */
  open(threadId) {
    this.threadId = threadId;
    this.field.value = read(draftKey(threadId)) ?? "";
    this.sent = JSON.parse(read(outboxKey(threadId)) ?? "[]").map((one) => ({ ...one, state: "failed", why: one.why ?? "This page was left before it was sent." }));
    this.grow();
    this.show();
  }

  typed() {
    write(draftKey(this.threadId), this.field.value);
    this.grow();
  }

  grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, 240)}px`;
  }

  submit() {
    const text = this.field.value;
    if (!text.trim()) return;
    this.field.value = "";
    this.typed();
    const one = { id: randomId(), threadId: this.threadId, text, body: "", state: "sending", why: "" };
    one.body = JSON.stringify({ events: eventsOf(one.id, text) });
    this.sent.push(one);
    this.onSend();
    void this.send(one);
  }

  /** One after the other, so that messages are in the thread in the order in which they were sent. */
  async send(one) {
    one.state = "sending";
    this.keep();
    const before = this.line;
    this.line = this.post(one, before);
    await this.line;
  }

  async post(one, before) {
    await before;
    try {
      await call("POST", threadPath(one.threadId, "/events:batch"), { text: one.body, key: one.id });
      one.state = "sent";
    } catch (error) {
      one.state = "failed";
      one.why = error.message;
    }
    this.keep();
  }

  /** The message is in the thread, so it is not here any more. */
  arrived(id) {
    if (this.sent.some((one) => one.id === id)) this.discard(id);
  }

  discard(id) {
    this.sent = this.sent.filter((one) => one.id !== id);
    this.keep();
  }

  keep() {
    const open = this.sent.filter(({ state, threadId }) => state !== "sent" && threadId === this.threadId);
    write(outboxKey(this.threadId), open.length ? JSON.stringify(open) : "");
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.sent.filter((one) => one.threadId === this.threadId).map((one) => this.item(one)));
  }

  item(one) {
    const state = make("span", { class: "outbox-state", role: "status" });
    setText(state, { sending: "Sending …", sent: "Sent", failed: `Not sent. ${one.why}` }[one.state]);
    const item = make("li", { class: `pending ${one.state}`, "data-id": one.id }, make("div", { class: "pending-text", dir: "auto" }, one.text), state);
    if (one.state === "failed") item.append(button("Retry", () => this.send(one)), button("Discard", () => this.discard(one.id)));
    return item;
  }
}

function button(text, action) {
  const made = make("button", { type: "button", class: "plain" }, text);
  made.onclick = action;
  return made;
}

function eventsOf(runId, text) {
  const common = { principalId: session.me.principalId, runId };
  const part = (what) => ({ type: "message_part", ...common, version: "ai-sdk-v6", part: { id: "text", ...what } });
  return [
    { type: "run_started", ...common, kind: "user_input" },
    part({ type: "text-start" }),
    ...pieces(text).map((delta) => part({ type: "text-delta", delta })),
    part({ type: "text-end" }),
    { type: "run_finished", ...common, outcome: "success" },
  ];
}

function pieces(text) {
  const found = [];
  for (let at = 0; at < text.length; at += PIECE) found.push(text.slice(at, at + PIECE));
  return found;
}

// Storage may be switched off, or full: then drafts live as long as the page.
function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    // see above
  }
}
