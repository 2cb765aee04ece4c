// The raw log: each event as it is stored, filtered by type and text, live.
import { get, readJson, threadPath } from "./api.js";
import { $, act, copy, exactTime, make, setText } from "./dom.js";
import { marked } from "./marks.js";
import { Stream } from "./stream.js";

const FIRST = 200;
const MOST = 2_000;
const TYPES = [
  "message_part", "participant_joined", "participant_left", "run_finished", "run_interrupt_requested",
  "run_started", "thread_title_updated", "tool_call_approval", "tool_call_result",
];

export class Events {
  constructor({ onState, onRefused }) {
    this.rows = []; // {row, seq, type, text}
    this.on = { state: onState, refused: onRefused };
    this.list = $("event-list");
    this.scroller = $("event-scroller");
    $("event-type").append(...TYPES.map((type) => make("option", {}, type)));
    $("event-type").addEventListener("change", () => this.filter());
    $("event-text").addEventListener("input", () => this.filter());
    $("earlier").addEventListener("click", () => act($("earlier"), $("event-count"), () => this.loadEarlier()));
  }

  open(thread) {
    this.clear();
    this.threadId = thread.threadId;
    this.first = Math.max(1, thread.headSeq - FIRST + 1);
    this.filter();
    this.stream = new Stream(threadPath(this.threadId, `/events/stream?fromSeq=${this.first}`), {
      onState: this.on.state,
      onRefused: this.on.refused,
      onEvent: (name, text) => {
        if (name === "event") this.add(text);
        else if (name === "subscription_closed") this.closed(readJson(text).reason);
      },
    });
  }

  close() {
    this.stream?.close();
    this.stream = null;
  }

  /** Nothing of the thread is left. */
  clear() {
    this.close();
    this.rows = [];
    this.list.replaceChildren();
  }

  closed(reason) {
    if (reason === "not_found") this.on.refused(404);
    else if (reason === "unauthenticated") this.on.refused(401);
  }

  add(text) {
    const one = this.rowOf(readJson(text), text);
    if (this.rows.length && one.seq <= this.rows.at(-1).seq) return;
    const isAtEnd = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 48;
    this.rows.push(one);
    this.list.append(one.row);
    while (this.rows.length > MOST && isAtEnd && !this.isLoading) {
      this.rows.shift().row.remove();
      this.first = this.rows[0].seq;
    }
    this.count();
    if (isAtEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  async loadEarlier() {
    const { threadId, stream } = this;
    const from = Math.max(1, this.first - FIRST);
    this.isLoading = true; // so nothing is taken away where these are to stand
    let events;
    try {
      events = await allOf(threadId, from, this.first - 1);
    } finally {
      this.isLoading = false;
    }
    if (this.stream !== stream) return;
    const rows = events.map((event) => this.rowOf(event, JSON.stringify(event)));
    const fromEnd = this.scroller.scrollHeight - this.scroller.scrollTop;
    this.rows.unshift(...rows);
    this.list.prepend(...rows.map(({ row }) => row));
    this.first = from;
    this.count();
    this.scroller.scrollTop = this.scroller.scrollHeight - fromEnd;
  }

  rowOf(event, text) {
    const time = make("time", { datetime: event.createdAt, title: exactTime(event.createdAt) }, event.createdAt.slice(11, 23));
    const what = event.type === "message_part" ? event.part?.type ?? event.part?.kind ?? "" : event.type;
    const summary = make(
      "summary", {},
      make("span", { class: "seq" }, String(event.seq)), time, make("bdi", { class: "event-what" }, marked(what)),
      make("bdi", { class: "event-who quiet" }, marked(event.principalId ?? event.byPrincipalId ?? "")), make("bdi", { class: "event-run quiet" }, marked(event.runId ?? "")),
    );
    const details = make("details", { class: "event" }, summary);
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const button = make("button", { type: "button", class: "plain copy" }, "Copy JSON");
      button.onclick = () => copy(text, button);
      details.append(make("pre", { tabindex: "0" }, marked(JSON.stringify(event, null, 2))), button);
    });
    const one = { row: make("li", {}, details), seq: event.seq, type: event.type, text: text.toLowerCase() };
    one.row.hidden = !this.matches(one);
    return one;
  }

  matches({ type, text }) {
    const wanted = $("event-type").value;
    return (!wanted || type === wanted) && text.includes($("event-text").value.trim().toLowerCase());
  }

  filter() {
    for (const one of this.rows) one.row.hidden = !this.matches(one);
    this.count();
  }

  count() {
    const shown = this.rows.filter(({ row }) => !row.hidden).length;
    setText($("event-count"), `${shown} of ${this.rows.length} shown`);
    $("earlier").hidden = this.first <= 1;
  }
}

/** All events from one seq to another, in as many pages as it takes: the server ends one early where they are large. */
async function allOf(threadId, fromSeq, toSeq) {
  const all = [];
  for (let next = fromSeq; next !== null && next <= toSeq;) {
    const { events, nextSeq } = await get(threadPath(threadId, `/events?${new URLSearchParams({ fromSeq: next, toSeq, limit: FIRST })}`));
    all.push(...events);
    next = nextSeq;
  }
  return all;
}
