// The messages of a thread in their order, however many there are.
//
// Theory of operation. Messages lie in blocks of up to 40. A block far from what is seen is empty and as high as it was; near it, it has
// its elements. So the browser holds a few hundred elements however long the thread is, and nothing jumps. While the reader is at the end,
// the end stays in sight; elsewhere what is read stays where it is.
import { attempt, dayOf, dayText, make, setText } from "./dom.js";
import { joins, messageElement, showHead, updateMessage } from "./messages.js";
import { isFact } from "./parts.js";

const BLOCK = 40;
const NEAR = 1_600;
const AT_END = 48;

const firstSeq = (message) => message.metadata.bubble.firstSeq;

export class Log {
  constructor(scroller, container, { onEnd }) {
    this.scroller = scroller;
    this.container = container;
    this.onEnd = onEnd;
    this.isAtEnd = true;
    this.scroller.addEventListener("scroll", () => this.looked(), { passive: true });
    this.near = new IntersectionObserver((entries) => this.moved(entries), { root: scroller, rootMargin: `${NEAR}px 0px` });
    new ResizeObserver(() => this.stick()).observe(container);
    new ResizeObserver(() => this.stick()).observe(scroller);
    this.clear();
  }

  clear(room = null) {
    this.room = room;
    this.blocks = [];
    this.byId = new Map(); // id → {message, element, block}
    this.near.disconnect();
    this.container.replaceChildren();
    this.isAtEnd = true;
  }

  get oldest() {
    return this.blocks[0]?.entries[0]?.message;
  }

  get newest() {
    return this.blocks.at(-1)?.entries.at(-1)?.message;
  }

  /** Shows a message, new or changed; the entry. One that opened before everything here is left to `prepend`. */
  put(message) {
    const entry = this.byId.get(message.id);
    if (entry) {
      entry.message = message;
      if (entry.element) {
        updateMessage(entry.element, message, this.room);
        entry.element.classList.toggle("joined", joins(this.before(entry)?.message, message));
      }
      return entry;
    }
    if (this.oldest && firstSeq(message) < firstSeq(this.oldest)) return null;
    return this.insert(message);
  }

  insert(message) {
    let last = this.blocks.findLast((block) => firstSeq(block.entries[0].message) <= firstSeq(message)) ?? this.blocks[0];
    if (!last || (last === this.blocks.at(-1) && last.entries.length >= BLOCK)) last = this.addBlock(this.blocks.length);
    const entry = { message, element: null, block: last };
    const after = last.entries.findLastIndex((one) => firstSeq(one.message) <= firstSeq(message));
    last.entries.splice(after + 1, 0, entry);
    this.byId.set(message.id, entry);
    if (last.isLive) this.render(last);
    return entry;
  }

  /** Older messages, in their order, before all others. */
  prepend(messages) {
    const fresh = messages.filter((message) => !this.byId.has(message.id));
    const edge = this.blocks[0];
    const fromEnd = this.scroller.scrollHeight - this.scroller.scrollTop;
    const made = [];
    for (let end = fresh.length; end > 0; end -= BLOCK) {
      const block = this.addBlock(0);
      block.entries = fresh.slice(Math.max(0, end - BLOCK), end).map((message) => ({ message, element: null, block }));
      for (const entry of block.entries) this.byId.set(entry.message.id, entry);
      made.push(block);
    }
    for (const block of [...made, edge]) if (block?.isLive) this.render(block);
    this.scroller.scrollTop = this.scroller.scrollHeight - fromEnd;
  }

  drop(id) {
    const entry = this.byId.get(id);
    if (!entry) return;
    this.byId.delete(id);
    const { block } = entry;
    block.entries.splice(block.entries.indexOf(entry), 1);
    if (block.entries.length) {
      if (block.isLive) this.render(block);
      return;
    }
    this.near.unobserve(block.section);
    block.section.remove();
    this.blocks.splice(this.blocks.indexOf(block), 1);
  }

  /** Names are shown anew: somebody's is known now. */
  rename() {
    for (const { message, element } of this.byId.values()) {
      if (!element) continue;
      showHead(element, message, this.room);
      if (element.classList.contains("fact-line")) updateMessage(element, message, this.room);
    }
  }

  /** Another day has begun: what was today is yesterday. */
  redate() {
    for (const day of this.container.querySelectorAll(".day")) setText(day, dayText(day.dataset.time));
  }

  /** Everything that depends on who is looking, or on what was asked of a run, is shown anew. */
  refresh() {
    for (const { message, element } of this.byId.values()) if (element) updateMessage(element, message, this.room);
  }

  /** Whether who speaks in a run spoke in it before. Of what is not here it is taken to be so. */
  goesOn({ metadata: { bubble: { runId, principalId, continuation } } }) {
    if (continuation === undefined) return false;
    const ids = Array.from({ length: continuation }, (_, number) => (number ? `${runId}~${number}` : runId));
    const earlier = ids.map((id) => this.byId.get(id)?.message);
    return earlier.some((message) => message === undefined || message.metadata.bubble.principalId === principalId);
  }

  /** Whether a message of this run is here. */
  tellsOf(runId) {
    return [...this.byId.values()].some(({ message }) => message.metadata.bubble.runId === runId && !isFact(message));
  }

  element(id) {
    return this.byId.get(id)?.element ?? null;
  }

  // Blocks

  addBlock(index) {
    const section = make("div", { class: "block" });
    const block = { section, entries: [], isLive: true };
    this.container.insertBefore(section, this.blocks[index]?.section ?? null);
    this.blocks.splice(index, 0, block);
    this.near.observe(section);
    return block;
  }

  render(block) {
    let before = this.blocks[this.blocks.indexOf(block) - 1]?.entries.at(-1)?.message;
    const children = [];
    for (const entry of block.entries) {
      attempt(() => children.push(...this.nodes(entry, before)));
      before = entry.message;
    }
    settle(block.section, children);
    block.section.style.height = "";
    block.isLive = true;
  }

  /** An entry's element, after its day if that begins with it. */
  nodes(entry, before) {
    const { message } = entry;
    const { createdAt } = message.metadata.bubble;
    const isNewDay = !before || dayOf(before.metadata.bubble.createdAt) !== dayOf(createdAt);
    entry.element ??= messageElement(message, this.room);
    entry.element.classList.toggle("joined", !isNewDay && joins(before, message));
    return isNewDay ? [make("h2", { class: "day", "data-time": createdAt }, dayText(createdAt)), entry.element] : [entry.element];
  }

  before({ block, message }) {
    const index = block.entries.findIndex((entry) => entry.message.id === message.id);
    return block.entries[index - 1] ?? this.blocks[this.blocks.indexOf(block) - 1]?.entries.at(-1);
  }

  moved(entries) {
    for (const { target, isIntersecting, boundingClientRect } of entries) {
      const block = this.blocks.find(({ section }) => section === target);
      if (!block || isIntersecting === block.isLive) continue;
      if (isIntersecting) this.render(block);
      else if (block !== this.blocks.at(-1) && !target.contains(document.activeElement) && !holdsSelection(target)) this.empty(block, boundingClientRect.height);
    }
  }

  empty(block, height) {
    block.section.style.height = `${height}px`;
    block.section.replaceChildren();
    for (const entry of block.entries) entry.element = null;
    block.isLive = false;
  }

  // The end

  looked() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < AT_END;
    if (isAtEnd !== this.isAtEnd) {
      this.isAtEnd = isAtEnd;
      this.onEnd(isAtEnd);
    }
  }

  stick() {
    if (this.isAtEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  toEnd() {
    this.isAtEnd = true;
    this.stick();
    this.onEnd(true);
  }
}

/** The children in their order; those that are there already are not moved, so that focus and selection stay. */
function settle(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}

function holdsSelection(element) {
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(element, true));
}
