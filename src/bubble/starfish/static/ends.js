// How runs ended of which no message tells: they failed, were stopped or lost before they said anything.
//
// Theory of operation. Runs are listed by where they began. `first` is where those begin that were looked through, as far back as the
// messages that are here; `next` is where those begin that are new. A run that was open when it was looked through, and is not any more,
// is asked for by itself.
import { get, threadPath } from "./api.js";

const BAD = new Set(["failed", "interrupted", "lost"]);
const PAGE = 200;

/** So many of the open runs are looked at. */
export const MOST_OPEN = 50;

export class Ends {
  /** `onEnd(run, isLive)` for each that ended badly, at least once. */
  constructor({ onEnd }) {
    this.onEnd = onEnd;
    this.line = Promise.resolve();
    this.watch(null);
  }

  watch(threadId) {
    this.threadId = threadId;
    this.wanted = this.first = this.next = null;
    this.open = new Map(); // id → where it began
  }

  /** From this seq on there are messages. */
  reach(seq) {
    this.wanted = Math.min(seq, this.wanted ?? seq);
  }

  /** Looks through what is new, when these runs are open. What could not be had is asked for again by the next look. */
  look(threadId, open) {
    this.line = this.line.then(() => this.once(threadId, open)).catch(() => {});
  }

  async once(threadId, open) {
    if (threadId !== this.threadId) return;
    const isOpen = new Set(open.map(({ runId }) => runId));
    for (const { runId, startedSeq } of open) this.open.set(runId, startedSeq);
    if (this.wanted === null) return;
    if (this.first === null) {
      this.next = this.wanted;
      await this.take(threadId, this.wanted, { isLive: false });
    } else {
      if (this.wanted < this.first) await this.take(threadId, this.wanted, { before: this.first, isLive: false });
      await this.take(threadId, this.next, { isLive: true });
    }
    if (threadId !== this.threadId) return;
    this.first = this.wanted;
    const listed = open.length < MOST_OPEN ? Infinity : open.at(-1).startedSeq;
    for (const [runId, startedSeq] of this.open) {
      if (!isOpen.has(runId) && startedSeq < listed) await this.take(threadId, startedSeq, { before: startedSeq + 1, isLive: true });
    }
  }

  /** Those that began from one seq on, and before another. */
  async take(threadId, from, { before = Infinity, isLive }) {
    let after = null;
    do {
      const limit = Math.min(PAGE, before - from);
      const page = await get(threadPath(threadId, `/runs?${new URLSearchParams({ fromSeq: from, limit, ...(after && { after }) })}`));
      if (threadId !== this.threadId) return;
      for (const run of page.runs) if (run.startedSeq < before) this.put(run, isLive);
      after = (page.runs.at(-1)?.startedSeq ?? before) + 1 < before ? page.nextAfter : null;
    } while (after !== null);
  }

  put(run, isLive) {
    this.next = Math.max(this.next, run.startedSeq + 1);
    if (run.state === "open") this.open.set(run.runId, run.startedSeq);
    else {
      this.open.delete(run.runId);
      if (BAD.has(run.outcome)) this.onEnd(run, isLive);
    }
  }
}
