// Who is working on the open thread, as the server has it, and how they are asked to stop.
import { append, get, session, threadPath } from "./api.js";
import { $, make } from "./dom.js";
import { Ends, MOST_OPEN } from "./ends.js";

const EVERY = 4_000;
const OFTEN = 1_000; // while somebody works
const SOON = 120;
const FEW = 3; // are shown by themselves, each of which may need a line

export class Runs {
  /** `nameOf(id)`, `mayStop()`; `onChange()` when others are running than before; `onEnd(run, isLive)` when one ended badly. */
  constructor({ nameOf, mayStop, onChange, onEnd }) {
    this.nameOf = nameOf;
    this.mayStop = mayStop;
    this.onChange = onChange;
    this.ends = new Ends({ onEnd });
    this.place = $("running");
    this.watch(null);
    setInterval(() => { if (!document.hidden) this.look(); }, EVERY);
    setInterval(() => { if (!document.hidden && this.open.length) this.look(); }, OFTEN);
  }

  /** The runs of this thread from now on; null for none. */
  watch(threadId) {
    this.threadId = threadId;
    this.open = [];
    this.over = new Set(); // ended, as a message says
    this.isUnfolded = false;
    this.ends.watch(threadId);
    this.stopping = new Set();
    this.problem = "";
    this.show();
    this.look();
  }

  /** Asks the server soon, once for all that happens until then. */
  look() {
    if (!this.threadId) return;
    this.looking ??= setTimeout(() => {
      this.looking = null;
      this.load().catch(() => {}); // the next look is soon
    }, SOON);
  }

  async load() {
    const { threadId } = this;
    if (!threadId) return;
    const { runs } = await get(threadPath(threadId, `/runs?state=open&limit=${MOST_OPEN}`));
    if (this.threadId !== threadId) return;
    this.ends.look(threadId, runs);
    this.take(runs.filter(({ runId }) => !this.over.has(runId)));
  }

  /** A message says that this run is over. */
  ended(runId) {
    this.over.add(runId);
    if (this.find(runId)) this.take(this.open.filter((run) => run.runId !== runId));
  }

  /** From this seq on there are messages. */
  reach(seq) {
    this.ends.reach(seq);
    this.look();
  }

  take(runs) {
    const ids = (some) => some.map(({ runId }) => runId).join();
    const isChanged = ids(runs) !== ids(this.open);
    this.open = runs;
    if (isChanged) this.problem = "";
    for (const id of this.stopping) if (!this.find(id)) this.stopping.delete(id);
    this.show();
    if (isChanged) this.onChange();
  }

  find(id) {
    return this.open.find(({ runId }) => runId === id);
  }

  show() {
    const shown = this.open.filter((run) => run.principalId !== session.me?.principalId || run.kind !== "user_input");
    const isMany = shown.length > FEW;
    const isUnfolded = isMany && this.isUnfolded;
    const items = (isMany && !isUnfolded ? shown.slice(0, FEW - 1) : shown).map((run) => this.item(run));
    if (isMany) items.push(this.turn(isUnfolded ? "Show fewer" : `and ${shown.length - items.length} more`, isUnfolded));
    if (this.problem) items.unshift(make("span", { class: "problem", role: "alert" }, this.problem));
    const key = JSON.stringify(items.map((item) => [item.dataset.run, item.textContent]));
    if (this.place.dataset.key === key) return;
    this.place.dataset.key = key;
    const focused = this.place.contains(document.activeElement) ? document.activeElement.closest("[data-run]")?.dataset.run ?? "more" : null;
    this.place.classList.toggle("is-unfolded", isUnfolded);
    if (isUnfolded) this.place.tabIndex = 0;
    else this.place.removeAttribute("tabindex");
    this.place.replaceChildren(...items);
    if (focused) (items.find((item) => item.dataset.run === focused)?.querySelector("button") ?? $("text")).focus();
  }

  turn(words, isUnfolded) {
    const button = make("button", { type: "button", class: "plain", "aria-expanded": isUnfolded, "aria-controls": "running" }, words);
    button.onclick = () => {
      this.isUnfolded = !isUnfolded;
      this.show();
    };
    return make("span", { class: "more-runs", "data-run": "more" }, button);
  }

  item({ runId, principalId }) {
    const isAsked = this.stopping.has(runId);
    const name = this.nameOf(principalId);
    const item = make("span", { class: "run", "data-run": runId }, make("bdi", { title: name }, name), make("span", {}, isAsked ? " is asked to stop …" : " is working …"));
    if (this.mayStop() && !isAsked) {
      const button = make("button", { type: "button", class: "stop", "aria-label": `Stop ${name}` }, "Stop");
      button.onclick = () => this.stop(runId);
      item.append(button);
    }
    return item;
  }

  async stop(runId) {
    const { threadId } = this;
    this.stopping.add(runId);
    this.problem = "";
    this.show();
    try {
      await append(threadId, { type: "run_interrupt_requested", runId });
    } catch (error) {
      if (this.threadId !== threadId) return;
      this.stopping.delete(runId);
      this.problem = error.message;
      this.show();
    }
  }
}
