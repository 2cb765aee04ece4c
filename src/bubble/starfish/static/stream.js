// Server-sent events that come back by themselves, after the last id.
//
// Not the browser's EventSource: it cannot resume after the page has let go of it, does not say why a stream was refused, and
// notices a dead connection late or never. Here silence of 40 seconds, twice the server's keep-alive and more, counts as one.
import { credentials, isRenewed, session } from "./api.js";

const SILENCE = 40_000;
const REST = 60_000; // in the background, until the connection is let go of: browsers have six for all tabs of a server together
const FIRST_WAIT = 300;
const LONGEST_WAIT = 5_000;

export class Stream {
  /** `onEvent(name, text, id)`; `onState("connecting" | "open" | "waiting")`; `onRefused(status)` ends it for good. */
  constructor(url, { onEvent, onState = () => {}, onRefused = () => {} }) {
    this.lastId = null;
    this.url = url;
    this.on = { event: onEvent, state: onState, refused: onRefused };
    this.over = false;
    this.wake = () => {};
    this.woken = () => this.wake();
    this.turned = () => this.restOrWake();
    addEventListener("online", this.woken);
    document.addEventListener("visibilitychange", this.turned);
    void this.run();
  }

  close() {
    this.over = true;
    this.abort?.abort();
    this.wake();
    clearTimeout(this.resting);
    removeEventListener("online", this.woken);
    document.removeEventListener("visibilitychange", this.turned);
  }

  restOrWake() {
    clearTimeout(this.resting);
    this.isResting = false;
    if (!document.hidden) return this.wake();
    this.resting = setTimeout(() => {
      this.isResting = true;
      this.abort?.abort();
    }, REST);
  }

  async run() {
    let wait = FIRST_WAIT;
    while (!this.over) {
      this.on.state("connecting");
      const heard = await this.once().catch(() => false);
      if (this.over) return;
      if (this.isResting) {
        await new Promise((resolve) => { this.wake = resolve; });
        continue;
      }
      wait = heard ? FIRST_WAIT : Math.min(wait * 2, LONGEST_WAIT);
      this.on.state("waiting");
      await this.sleep(wait * (0.5 + Math.random() / 2));
    }
  }

  /** One connection, to its end; whether anything came. */
  async once() {
    this.abort = new AbortController();
    this.stillHere();
    const token = session.me?.csrfToken;
    const headers = { ...credentials(), ...(this.lastId !== null && { "Last-Event-ID": this.lastId }) };
    try {
      const answer = await fetch(this.url, { headers, signal: this.abort.signal, cache: "no-store" });
      if (answer.status === 403 && (await isRenewed(token))) return true;
      if ([400, 401, 403, 404].includes(answer.status)) {
        if (this.over) return false;
        this.close();
        this.on.refused(answer.status);
      }
      return answer.ok && (await this.read(answer.body.getReader()));
    } finally {
      clearTimeout(this.timer);
    }
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let heard = false;
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.over) return heard;
      if (!heard) this.on.state("open");
      heard = true;
      this.stillHere();
      const pieces = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = pieces.pop();
      for (const piece of pieces) this.take(piece);
    }
  }

  take(record) {
    let name = "message";
    const data = [];
    for (const line of record.split("\n")) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("id:")) this.lastId = line.slice(3).trim();
    }
    if (data.length && !this.over) this.on.event(name, data.join("\n"));
  }

  stillHere() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.abort.abort(), SILENCE);
  }

  sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
