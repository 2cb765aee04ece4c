// Who takes part, in which role, and who is running; and what an owner may do with the thread.
import { get, may, patch, put, remove, session, threadPath } from "./api.js";
import { $, act, clone, make, setAvatar, setText } from "./dom.js";
import { ask } from "./ask.js";
import { marked } from "./marks.js";
import { titleOf } from "./threads.js";

const AGAIN = 4_000; // when the participants could not be had
const MESSAGE = ["run_started", "message_part", "run_finished"];
const ROLES = ["observer", "participant", "owner"];

export class People {
  constructor({ onChange, onGone }) {
    this.on = { change: onChange, gone: onGone };
    this.clear();
    $("invite").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.invite();
    });
    $("rename").addEventListener("click", () => this.rename());
    $("leave").addEventListener("click", () => this.leave());
    $("delete").addEventListener("click", () => this.destroy());
    setInterval(() => { if (!this.isLoaded && !document.hidden) this.load().catch(() => {}); }, AGAIN);
    $("join").addEventListener("click", () => act($("join"), this.problem(), () => this.put(session.me.principalId, "participant")));
  }

  clear() {
    this.thread = null;
    this.grants = [];
    this.running = new Set();
    this.isLoaded = false;
    this.shown = "";
    $("people-list").replaceChildren();
    $("invite-id").value = "";
    for (const problem of document.querySelectorAll("#people .problem")) problem.textContent = "";
  }

  async open(thread) {
    this.clear();
    this.thread = thread;
    this.show();
    await this.load();
  }

  get isAdmin() {
    return session.me.deploymentRole === "admin";
  }

  get role() {
    return this.thread?.role;
  }

  get owns() {
    return this.isAdmin || this.role === "owner";
  }

  get manages() {
    return this.owns && may("grants.manage");
  }

  get takesPart() {
    return this.isAdmin || ![undefined, "observer"].includes(this.role);
  }

  get mayWrite() {
    return MESSAGE.every((type) => this.mayAppend(type));
  }

  mayAppend(type) {
    return this.takesPart && may(`events.${type}`);
  }

  principal(id) {
    return id === session.me.principalId ? session.me : this.grants.find((grant) => grant.principalId === id)?.principal;
  }

  async load() {
    const threadId = this.thread?.threadId;
    if (!threadId) return;
    const grants = [];
    let after = null;
    do {
      const page = await get(threadPath(threadId, `/grants?${new URLSearchParams({ limit: "500", ...(after && { after }) })}`));
      grants.push(...page.grants);
      after = page.nextAfter;
    } while (after !== null);
    if (this.thread?.threadId !== threadId) return;
    this.grants = grants;
    this.isLoaded = true;
    const role = grants.find(({ principalId }) => principalId === session.me.principalId)?.role;
    this.thread = { ...this.thread, role };
    this.show();
    this.on.change();
  }

  /** Who works now. */
  setRunning(runs) {
    this.running = new Set(runs.map(({ principalId }) => principalId));
    this.show();
  }

  show() {
    this.showList();
    setText($("thread-id"), this.thread?.threadId ?? "");
    $("invite").hidden = !this.manages;
    $("rename").hidden = !this.owns || !may("thread.update");
    $("delete").hidden = !this.owns || !may("thread.delete");
    $("leave").hidden = !this.role || !may("grants.leave");
    $("join").hidden = this.takesPart || !may("grants.join") || this.thread?.joinPolicy !== "open";
  }

  showList() {
    const list = $("people-list");
    const shown = JSON.stringify([this.grants, [...this.running], this.manages]);
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = list.contains(document.activeElement) ? [document.activeElement.closest("li").dataset.id, document.activeElement.className] : null;
    list.replaceChildren(...this.grants.map((grant) => this.item(grant)));
    if (focused) list.querySelector(`[data-id="${CSS.escape(focused[0])}"] .${focused[1].split(" ")[0]}`)?.focus();
  }

  item(grant) {
    const { principalId, principal, role } = grant;
    const item = clone("t-person");
    item.dataset.id = principalId;
    const name = marked(principal?.displayName ?? principalId);
    setAvatar(item.querySelector(".avatar"), principalId, name);
    setText(item.querySelector(".name"), name);
    const about = item.querySelector(".id");
    setText(about, principalId);
    item.querySelector(".badge").hidden = principal?.kind !== "bot";
    const isRunning = this.running.has(principalId);
    item.classList.toggle("is-running", isRunning);
    if (isRunning) about.prepend(make("span", { class: "busy" }, "working"), " · ");
    item.querySelector(".role").append(...(this.manages ? this.controls(grant, name) : [make("span", { class: "role-text" }, role)]));
    return item;
  }

  controls({ principalId, role }, name) {
    const select = make("select", { class: "role-select", "aria-label": `Role of ${name}` });
    for (const each of new Set([...ROLES, role])) select.append(make("option", {}, each));
    select.value = role;
    select.onchange = async () => {
      await act(select, this.problem(), () => this.put(principalId, select.value));
      this.shown = ""; // what was refused is not what stands there
      await this.load();
    };
    if (principalId === session.me.principalId) return [select];
    const button = make("button", { type: "button", class: "remove icon", "aria-label": `Remove ${name}`, title: `Remove ${name}` }, "×");
    button.onclick = () => this.removeSomebody(principalId, name);
    return [select, button];
  }

  async put(principalId, role) {
    await put(threadPath(this.thread.threadId, `/grants/${encodeURIComponent(principalId)}`), { role });
    await this.load();
  }

  async invite() {
    const form = $("invite");
    const id = $("invite-id");
    await act(form.querySelector("button"), form.querySelector(".problem"), async () => {
      await this.put(id.value.trim(), $("invite-role").value);
      id.value = "";
    });
    id.focus();
  }

  removeSomebody(principalId, name) {
    const { threadId } = this.thread;
    return ask({
      threadId,
      title: ["Remove ", make("bdi", {}, name), " from ", this.title(), "?"],
      text: "They see nothing of this thread from now on. What they wrote stays.",
      confirm: "Remove",
      danger: true,
      action: async () => {
        await remove(threadPath(threadId, `/grants/${encodeURIComponent(principalId)}`));
        await this.load();
      },
    });
  }

  rename() {
    const { threadId } = this.thread;
    return ask({
      threadId,
      title: ["Rename ", this.title()],
      label: "Its name",
      value: this.thread.title ?? "",
      required: false,
      confirm: "Rename",
      action: async (title) => {
        const thread = await patch(threadPath(threadId), { title: title || null });
        if (this.thread?.threadId !== threadId) return;
        this.thread = { ...this.thread, title: thread.title };
        this.on.change();
      },
    });
  }

  async leave() {
    const { threadId } = this.thread;
    const isDone = await ask({
      threadId,
      title: ["Leave ", this.title(), "?"],
      text: "You need another invitation to come back.",
      confirm: "Leave",
      danger: true,
      action: () => remove(threadPath(threadId, `/grants/${encodeURIComponent(session.me.principalId)}`)),
    });
    if (isDone) this.on.gone(threadId, "You left the thread");
  }

  async destroy() {
    const { threadId } = this.thread;
    const isDone = await ask({
      threadId,
      title: ["Delete ", this.title(), " for good?"],
      text: "Its messages are gone for everybody, and nobody can bring them back.",
      confirm: "Delete for good",
      danger: true,
      action: () => remove(threadPath(threadId)),
    });
    if (isDone) this.on.gone(threadId, "The thread was deleted");
  }

  /** What the thread is called, within a sentence. */
  title() {
    return make("bdi", {}, titleOf(this.thread));
  }

  problem() {
    return $("manage").querySelector(".problem");
  }
}
