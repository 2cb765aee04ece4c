// The list of threads: by latest activity, with what is unread, searched by the server.
import { get, may, post, put, session, threadPath } from "./api.js";
import { $, briefTime, make, setText } from "./dom.js";
import { ask } from "./ask.js";
import { isSeen, marked } from "./marks.js";
import { onSeen, tellSeen } from "./tabs.js";

const EVERY = 5_000;
const LOOK = 10; // messages that are looked at to count what is unread

export const titleOf = ({ title }) => (isSeen(title ?? "") ? marked(title) : "Untitled thread");

export class Threads {
  /** `onOpen(threadId)`; `isShown()` says whether the open thread is on the screen: on a phone this list may stand in its place. */
  constructor({ onOpen, isShown }) {
    this.onOpen = onOpen;
    this.isShown = isShown;
    this.threads = [];
    this.after = null;
    this.pages = 1;
    this.current = null;
    this.unread = new Map(); // id → {head, count, cursor}
    $("search").addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.load(), 150);
    });
    $("more-threads").addEventListener("click", () => {
      this.pages += 1;
      void this.load();
    });
    for (const id of ["new-thread", "welcome-new"]) $(id).addEventListener("click", () => this.create());
    $("thread-list").addEventListener("keydown", (event) => moveIn(event));
    onSeen(({ who, threadId, seq }) => { if (who === session.me?.principalId) this.wasSeen(threadId, seq); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) void this.load(); });
    setInterval(() => { if (!document.hidden) void this.load(); }, EVERY);
  }

  async load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const q = $("search").value.trim();
    const threads = [];
    let after = null;
    try {
      for (let page = 0; page < this.pages; page += 1) {
        const query = new URLSearchParams({ limit: "50", ...(q && { q }), ...(after && { after }) });
        const answer = await get(`v1/threads?${query}`);
        threads.push(...answer.threads);
        after = answer.nextAfter;
        if (after === null) break;
      }
    } catch {
      return; // the connection's state is told elsewhere; the next look is soon
    }
    if (turn !== this.turn) return;
    this.threads = threads;
    this.after = after;
    this.show();
    await this.count();
  }

  async create() {
    await ask({
      title: "New thread",
      label: "Its name",
      required: false,
      confirm: "Create",
      action: async (title) => {
        const thread = await post("v1/threads", title ? { title } : {});
        this.threads.unshift(thread);
        this.onOpen(thread.threadId);
      },
    });
    await this.load();
  }

  select(threadId) {
    this.current = threadId;
    this.title = null;
    this.show();
  }

  /** What the open thread is called, also where it is not in the list. */
  name(title) {
    this.title = title;
    this.show();
  }

  /** Everything up to the seq was seen. */
  async seen(threadId, seq) {
    this.wasSeen(threadId, seq);
    tellSeen(session.me.principalId, threadId, seq);
    if (!may("cursor.write")) return;
    await put(threadPath(threadId, "/cursor"), { seq }).catch(() => {}); // the next message brings it again
  }

  /** Counts anew at the next look, if more is there than what was seen. */
  wasSeen(threadId, seq) {
    const known = this.unread.get(threadId) ?? { head: 0, count: 0, cursor: 0 };
    this.unread.set(threadId, { head: seq < known.head ? 0 : known.head, count: 0, cursor: Math.max(known.cursor, seq) });
    this.show();
  }

  show() {
    this.showList();
    const none = $("no-threads");
    none.hidden = this.threads.length > 0;
    setText(none, $("search").value.trim() ? "No thread has this in its name." : "No threads yet.");
    $("more-threads").hidden = this.after === null;
    const total = this.threads.filter((thread) => this.countOf(thread)).length;
    document.title = `${total ? `(${total}) ` : ""}${this.title ? `${this.title} · ` : ""}Bubble`;
  }

  /** What comes into a thread that is on the screen is not counted as unread. */
  isRead(threadId) {
    return threadId === this.current && this.isShown();
  }

  countOf({ threadId }) {
    return this.isRead(threadId) ? 0 : this.unread.get(threadId)?.count ?? 0;
  }

  showList() {
    const list = $("thread-list");
    const shown = JSON.stringify(this.threads.map((thread) => [thread.threadId, thread.title, briefTime(thread.lastActivityAt), this.countOf(thread), thread.threadId === this.current]));
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    list.replaceChildren(...this.threads.map((thread) => this.item(thread)));
    if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  item(thread) {
    const { threadId } = thread;
    const count = this.countOf(thread);
    const link = make("a", { href: `./?${new URLSearchParams({ thread: threadId })}`, "data-id": threadId, class: "thread-link" });
    if (threadId === this.current) link.setAttribute("aria-current", "page");
    link.append(make("bdi", { class: "thread-title", title: titleOf(thread) }, titleOf(thread)));
    const meta = link.appendChild(make("span", { class: "thread-meta" }));
    if (count) {
      const text = count >= LOOK ? `${LOOK - 1}+` : String(count);
      meta.append(make("span", { class: "unread", role: "img", "aria-label": `${text} unread` }, text));
    }
    meta.append(make("time", { class: "quiet small", datetime: thread.lastActivityAt }, briefTime(thread.lastActivityAt)));
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      this.onOpen(threadId);
    };
    return make("li", {}, link);
  }

  /** Counts what is unread where something happened since the last count, one thread after the other. */
  async count() {
    if (this.counting || !may("cursor.write")) return;
    this.counting = true;
    try {
      for (const thread of this.threads) {
        const known = this.unread.get(thread.threadId);
        if (this.isRead(thread.threadId) || !thread.role || known?.head === thread.headSeq) continue;
        this.unread.set(thread.threadId, await unreadOf(thread, known));
        this.show();
      }
    } catch {
      // gone meanwhile, or no connection: the next look counts again
    } finally {
      this.counting = false;
    }
  }
}

async function unreadOf(thread, known) {
  const { seq } = await get(threadPath(thread.threadId, "/cursor"));
  const cursor = Math.max(seq, known?.cursor ?? 0);
  if (cursor >= thread.headSeq) return { head: thread.headSeq, count: 0, cursor };
  const { messages } = await get(threadPath(thread.threadId, `/messages?limit=${LOOK}`));
  const isNew = ({ metadata: { bubble } }) => bubble.firstSeq > cursor && bubble.principalId !== session.me.principalId && bubble.runId;
  return { head: thread.headSeq, count: messages.filter(isNew).length, cursor };
}

/** Up and down go through a list of links. */
function moveIn(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const links = [...event.currentTarget.querySelectorAll("a")];
  const to = links[links.indexOf(document.activeElement) + step];
  if (!to) return;
  event.preventDefault();
  to.focus();
}
