// Who is working on the open thread, as the server has it, and how they are asked to stop.
import { append, get, session, threadPath } from "./api.js";
import { $, make } from "./dom.js";

const EVERY = 4_000;
const SOON = 120;

export class Runs {
  /** `nameOf(id)`, `mayStop()`; `onChange()` when others are running than before. */
  constructor({ nameOf, mayStop, onChange }) {
    this.nameOf = nameOf;
    this.mayStop = mayStop;
    this.onChange = onChange;
    this.place = $("running");
    this.watch(null);
    setInterval(() => { if (!document.hidden) this.look(); }, EVERY);
  }

  /** The runs of this thread from now on; null for none. */
  watch(threadId) {
    this.threadId = threadId;
    this.open = [];
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
    const { runs } = await get(threadPath(threadId, "/runs?state=open&limit=50"));
    if (this.threadId !== threadId) return;
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
    const items = shown.map((run) => this.item(run));
    if (this.problem) items.push(make("span", { class: "problem", role: "alert" }, this.problem));
    const key = JSON.stringify(items.map((item) => [item.dataset.run, item.textContent]));
    if (this.place.dataset.key === key) return;
    this.place.dataset.key = key;
    const focused = this.place.contains(document.activeElement) ? document.activeElement.closest(".run").dataset.run : null;
    this.place.replaceChildren(...items);
    if (focused) (items.find((item) => item.dataset.run === focused)?.querySelector("button") ?? $("text")).focus();
  }

  item({ runId, principalId }) {
    const isAsked = this.stopping.has(runId);
    const name = this.nameOf(principalId);
    const item = make("span", { class: "run", "data-run": runId }, make("bdi", {}, name), isAsked ? " is asked to stop …" : " is working …");
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
