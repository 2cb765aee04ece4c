// The messages of the open thread: they come over one stream that resumes, older ones by pages when somebody scrolls up to them.
import { get, readJson, session, threadPath, withReactions } from "./api.js";
import { $, announce, attempt, make, setText } from "./dom.js";
import { Log } from "./log.js";
import { endId, endOf, spoken } from "./messages.js";
import { isFact } from "./parts.js";
import { Stream } from "./stream.js";

const PAGE = 50;
const AHEAD = 800; // pixels before the first message is reached

export class Conversation {
  /** `on`: `state(state)`, `refused(status)`, `message(message, isNew)`, `seen(seq)`, `flushed()`, `reached(seq)` when there are all messages from this seq on. */
  constructor(on) {
    this.on = on;
    this.log = new Log($("scroller"), $("log"), { onEnd: (isAtEnd) => this.ended(isAtEnd) });
    this.queue = new Map();
    new IntersectionObserver(() => this.loadOlder(), { root: $("scroller"), rootMargin: `${AHEAD}px 0px` }).observe($("older"));
    $("latest").addEventListener("click", () => {
      this.log.toEnd();
      $("text").focus();
    });
    document.addEventListener("visibilitychange", () => this.see());
    this.close();
  }

  open(thread, room) {
    this.close();
    this.threadId = thread.threadId;
    this.log.clear(room);
    setText($("older"), "Loading …");
    const query = new URLSearchParams({ format: "html", limit: String(PAGE) });
    this.stream = new Stream(threadPath(this.threadId, `/messages/stream?${query}`), {
      onState: this.on.state,
      onRefused: this.on.refused,
      onEvent: (name, text) => this.take(name, text),
    });
  }

  /** What is here stays, and nothing more comes. */
  stop() {
    this.stream?.close();
  }

  close() {
    this.stop();
    this.stream = null;
    this.threadId = null;
    this.queue.clear();
    this.isWhole = false; // whether the first message is here
    this.isReached = false;
    this.isReading = false;
    this.failed = false;
    this.missed = 0;
    this.seq = 0;
    this.seenSeq = 0;
    this.log.clear();
    this.ended(true);
  }

  take(name, text) {
    if (name === "subscription_closed") {
      const { reason } = readJson(text);
      if (reason === "not_found" || reason === "unauthenticated") this.on.refused(reason === "not_found" ? 404 : 401);
    } else if (name === "message") {
      const message = withReactions(readJson(text), text);
      this.queue.set(message.id, message);
      this.plan();
    } else if (name === "message.removed") {
      this.queue.set(readJson(text).id, null);
      this.plan();
    }
  }

  /** What came together is shown together, once per frame. A page in the background has no frames. */
  plan() {
    if (this.planned) return;
    this.planned = true;
    const flush = () => {
      this.planned = false;
      this.flush();
    };
    if (document.hidden) setTimeout(flush, 50);
    else requestAnimationFrame(flush);
  }

  flush() {
    const queue = [...this.queue];
    this.queue.clear();
    for (const [id, message] of queue) {
      attempt(() => (message === null ? this.log.drop(id) : this.show(message)));
    }
    if (this.stream?.lastId) this.pageOf = this.stream;
    this.log.stick();
    this.ended(this.log.isAtEnd);
    this.see();
    this.on.flushed();
    if (this.hasPage && !this.isReached) {
      this.isReached = true;
      this.reach();
    }
    if (!this.isWhole) void this.loadOlder();
  }

  show(message) {
    const before = this.log.byId.get(message.id)?.message;
    const entry = this.log.put(message);
    if (!entry) return;
    const about = message.metadata.bubble;
    if (!isFact(message)) this.log.drop(endId(about.runId));
    this.seq = Math.max(this.seq, about.lastSeq);
    const isLive = this.hasPage;
    if (isLive && !before && !this.log.isAtEnd && about.principalId !== session.me.principalId) this.missed += 1;
    const isDone = about.status === "finished" && before?.metadata.bubble.status !== "finished";
    if (isLive && isDone && about.principalId !== session.me.principalId && entry.element) announce(spoken(entry.element, message, this.log.room));
    this.on.message(message, { isLive, before });
  }

  reach() {
    this.on.reached(this.isWhole ? 1 : this.log.oldest?.metadata.bubble.firstSeq ?? 1);
  }

  /** A run ended, and no message of it says how. */
  end(run, isLive) {
    if (this.log.tellsOf(run.runId)) return;
    const message = endOf(run);
    const isNew = !this.log.byId.has(message.id);
    const element = this.log.put(message)?.element;
    this.log.stick();
    if (isNew && isLive && element) announce(element.querySelector(".parts").textContent);
  }

  /** Whether the first page is here: the last of its messages has an id. */
  get hasPage() {
    return this.stream !== null && this.pageOf === this.stream;
  }

  async loadOlder() {
    if (this.isReading || this.isWhole || !this.log.oldest || this.stream?.lastId === null) return;
    if ($("older").getBoundingClientRect().bottom < $("scroller").getBoundingClientRect().top - AHEAD) return;
    const { threadId, stream } = this;
    this.isReading = true;
    try {
      const query = new URLSearchParams({ format: "html", limit: String(PAGE), before: String(this.log.oldest.metadata.bubble.firstSeq) });
      const page = await get(threadPath(threadId, `/messages?${query}`));
      if (this.stream !== stream) return;
      this.isWhole = page.nextBefore === null;
      if (page.messages.length) this.log.prepend(page.messages);
      this.reach();
      for (const message of page.messages) this.on.message(message, { isLive: false });
      if (this.isWhole) setText($("older"), "The thread begins here.");
      this.isReading = false;
      if (!this.isWhole) requestAnimationFrame(() => this.loadOlder());
    } catch (error) {
      if (this.stream === stream) this.offerAgain(error);
    } finally {
      if (this.stream === stream && !this.failed) this.isReading = false;
    }
  }

  offerAgain(error) {
    const button = make("button", { type: "button", class: "plain" }, "Try again");
    this.failed = true;
    button.onclick = () => {
      this.failed = this.isReading = false;
      setText($("older"), "Loading …");
      void this.loadOlder();
    };
    $("older").replaceChildren(`${error.message} `, button);
  }

  ended(isAtEnd) {
    if (isAtEnd) this.missed = 0;
    $("latest").hidden = isAtEnd;
    setText($("latest-text"), this.missed ? `${this.missed} new` : "Jump to latest");
    if (isAtEnd) this.see();
  }

  /** Whether somebody can see the end: on a phone the threads or the participants may stand in its place. */
  get isInSight() {
    return this.log.isAtEnd && !document.hidden && $("scroller").checkVisibility() && !$("main").inert;
  }

  /** What is on the screen was seen. */
  see() {
    if (!this.isInSight || this.seq <= this.seenSeq) return;
    clearTimeout(this.seeing);
    const { threadId, seq } = this;
    this.seeing = setTimeout(() => {
      if (this.threadId !== threadId || !this.isInSight) return;
      this.seenSeq = seq;
      this.on.seen(seq);
    }, 700);
  }
}
