// Writing: a message is a run of its own, appended in one batch. What could not be sent stays, and is sent again with the same key,
// so that it is in the log once, whatever became of the first attempt.
import { call, randomId, session, threadPath } from "./api.js";
import { $, make, setText } from "./dom.js";
import { names, read, write } from "./tabs.js";

const PIECE = 100_000; // characters of one event; an event may have a megabyte

const draftOf = (threadId) => `draft:${session.me.principalId}:${threadId}`;
const outboxOf = (threadId) => `outbox:${session.me.principalId}:${threadId}`;

export class Composer {
  /** `onSend()` when something is on its way; `onSent(one)` when the server has it; `onStopped()` when nothing can be sent any more, and it stays in the field. */
  constructor({ onSend, onSent, onStopped }) {
    this.form = $("composer");
    this.field = $("text");
    this.list = $("outbox");
    this.problem = $("too-long");
    this.on = { send: onSend, sent: onSent, stopped: onStopped };
    this.threadId = null;
    this.longest = Infinity; // bytes of a batch that the server takes
    this.outboxes = new Map(); // thread → what was sent there and has not arrived
    this.unkept = new Set(); // threads of which something is here that the browser has no room to keep
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

  /** Whether something in this tab, in whichever thread and by whomever, was sent and did not arrive. */
  get hasUnsent() {
    const inMemory = [...this.outboxes.values()].flat().some(({ state }) => state !== "sent");
    return inMemory || names().some((name) => name.startsWith("outbox:"));
  }

  /** Another thread: its draft, and what of it is still to be sent. */
  open(threadId) {
    this.threadId = threadId;
    this.field.value = read(draftOf(threadId)) ?? "";
    this.outboxes.set(threadId, this.outboxes.get(threadId)?.filter(({ state }) => state !== "sent") ?? left(threadId));
    setText(this.problem, "");
    this.grow();
    this.show();
  }

  /** No thread, so nothing can be written. */
  close() {
    this.threadId = null;
    this.field.value = "";
    setText(this.problem, "");
    this.list.replaceChildren();
  }

  typed() {
    if (this.threadId === null) return;
    write(draftOf(this.threadId), this.field.value);
    setText(this.problem, "");
    this.grow();
  }

  grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, 240)}px`;
  }

  submit() {
    const text = this.field.value;
    if (!text.trim() || this.threadId === null) return;
    if (session.other) {
      this.on.stopped();
      return;
    }
    const one = { id: randomId(), threadId: this.threadId, text, state: "sending", why: "" };
    if (new Blob([bodyOf(one)]).size > this.longest) {
      setText(this.problem, "This message is too long to be sent. Send it in several pieces.");
      return;
    }
    this.field.value = "";
    this.typed();
    this.outboxes.get(one.threadId).push(one);
    this.on.send();
    void this.send(one);
  }

  /** One after the other, so that messages are in the thread in the order in which they were sent. */
  async send(one) {
    one.state = "sending";
    this.keep(one.threadId);
    const before = this.line;
    this.line = this.post(one, before);
    await this.line;
  }

  async post(one, before) {
    await before;
    try {
      const { events } = await call("POST", threadPath(one.threadId, "/events:batch"), { text: bodyOf(one), key: one.id });
      one.seq = events.at(-1).seq;
      one.state = "sent";
    } catch (error) {
      one.state = "failed";
      one.why = error.message;
    }
    this.keep(one.threadId);
    if (one.state === "sent") this.on.sent(one);
  }

  /** The message is in the open thread, so it is not here any more. */
  arrived(id) {
    if (this.outboxes.get(this.threadId).some((one) => one.id === id)) this.discard(id);
  }

  /** Everything up to the seq is in the open thread, on the screen or above it. */
  reached(seq) {
    for (const one of this.outboxes.get(this.threadId)) if (one.state === "sent" && one.seq <= seq) this.discard(one.id);
  }

  discard(id) {
    this.outboxes.set(this.threadId, this.outboxes.get(this.threadId).filter((one) => one.id !== id));
    this.keep(this.threadId);
  }

  keep(threadId) {
    const isKept = write(outboxOf(threadId), this.outboxes.get(threadId).filter(({ state }) => state !== "sent"));
    this.unkept[isKept ? "delete" : "add"](threadId);
    if (threadId === this.threadId) this.show();
  }

  show() {
    this.list.replaceChildren(...this.outboxes.get(this.threadId).map((one) => this.item(one)));
  }

  item(one) {
    const state = make("span", { class: "outbox-state", role: "status" });
    const unkept = this.unkept.has(one.threadId) ? " It is lost when this page is loaded again: the browser has no room to keep it." : "";
    setText(state, { sending: "Sending …", sent: "Sent", failed: `Not sent. ${one.why}${unkept}` }[one.state]);
    const item = make("li", { class: `pending ${one.state}`, "data-id": one.id }, make("div", { class: "pending-text", dir: "auto" }, one.text), state);
    if (one.state === "failed") item.append(button("Retry", () => this.send(one)), button("Discard", () => this.discard(one.id)));
    return item;
  }
}

/** What this tab kept of an earlier page. */
function left(threadId) {
  return (read(outboxOf(threadId)) ?? []).map((one) => ({ ...one, state: "failed", why: one.why || "This page was left before it was sent." }));
}

function button(text, action) {
  const made = make("button", { type: "button", class: "plain" }, text);
  made.onclick = action;
  return made;
}

/** What is sent, the same at each attempt. */
const bodyOf = ({ id, text }) => JSON.stringify({ events: eventsOf(id, text) });

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
