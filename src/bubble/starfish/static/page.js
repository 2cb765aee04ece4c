// The page: who is logged in, which thread is open, how the connection is. The rest is in the modules beside this one.
import { get, isRenewed, may, remove, session, threadPath } from "./api.js";
import { ask, dismiss } from "./ask.js";
import { Bots } from "./bots.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { $, announce, dayOf, isFocusLost, make, setText } from "./dom.js";
import { Events } from "./events.js";
import { marked } from "./marks.js";
import { Names } from "./names.js";
import { People } from "./people.js";
import { Runs } from "./runs.js";
import { forget, isLoggedOut, isUnsentElsewhere, onAskedForUnsent, onLogin, onLogout, tellLogout, write } from "./tabs.js";
import { Threads, titleOf } from "./threads.js";

const ASK_AGAIN = 1_000;
const narrow = matchMedia("(max-width: 52rem)");
const medium = matchMedia("(max-width: 72rem)");

let thread = null;
let turn = 0; // of the thread that is shown or on its way
let isLeaving = false;
let view = "messages";

// Who is logged in

/** The session has ended by itself: what was written is kept for who logs in again. */
function toLogin() {
  if (isLeaving) return;
  if (isLoggedOut()) return leave();
  write("ended", true);
  toLoginAtOnce();
}

function toLoginAtOnce() {
  const threadId = askedFor();
  location.replace(threadId ? `login?${new URLSearchParams({ thread: threadId })}` : "login");
}

/** Somebody has logged out, here or in another tab: nothing is left of it, not even for who goes back. */
function leave() {
  isLeaving = true;
  forget();
  close();
  $("app").hidden = true;
  location.replace("login");
}

/** Somebody else is logged in now. What is on the screen stays, and nothing is asked or sent any more. */
function replaced() {
  conversation.stop();
  events.close();
  clearTimeout(telling);
  tell("");
  $("ask").close();
  $("bots").close();
  setText($("other"), marked(session.other.displayName));
  $("replaced").hidden = false;
  sayReplaced();
}

const sayReplaced = () => announce($("replaced-text").textContent);

$("reload").addEventListener("click", () => location.reload());
onLogin(() => void isRenewed());
onLogout(leave);
// A page that the browser kept to go back to begins anew: much may have happened since.
addEventListener("pageshow", ({ persisted }) => { if (persisted) location.reload(); });

// Names

const names = new Names({
  known: (id) => people.principal(id),
  onLearned() {
    conversation.log.rename();
    runs.show();
  },
});

const nameOf = (id) => names.of(id);

function roomOf(threadId) {
  const me = session.me.principalId;
  return {
    threadId,
    me,
    nameOf,
    goesOn: (message) => conversation.log.goesOn(message),
    kindOf: (id) => names.principal(id)?.kind,
    mayDecide: ({ metadata: { bubble } }, type) => people.mayAppend(type) && session.me.kind === "user" && bubble.principalId !== me && runs.find(bubble.runId)?.principalId !== me,
  };
}

// The parts of the page

const people = new People({
  onChange() {
    if (!thread) return;
    thread = { ...thread, ...people.thread };
    showThread();
    conversation.log.rename();
    conversation.log.refresh();
  },
  onGone(threadId, why) {
    const shown = askedFor();
    if (shown === null || shown === threadId) gone(why);
    else void threads.load();
  },
});

const runs = new Runs({ nameOf, mayStop: () => people.mayAppend("run_interrupt_requested"), onChange: () => people.setRunning(runs.open), onEnd: (run, isLive) => conversation.end(run, isLive) });

const composer = new Composer({
  onSend: () => conversation.log.toEnd(),
  onSent({ threadId }) {
    if (threadId === conversation.threadId) composer.reached(conversation.seq);
  },
  onStopped: () => sayReplaced(),
});

onAskedForUnsent(() => composer.hasUnsent);

const threads = new Threads({ onOpen: (threadId) => go({ threadId }), isShown: () => $("thread").checkVisibility() && !$("main").inert });

const conversation = new Conversation({
  state: connectionState,
  refused,
  seen: (seq) => thread?.role && threads.seen(thread.threadId, seq),
  reached: (seq) => runs.reach(seq),
  flushed() {
    $("older").hidden = false;
    composer.reached(conversation.seq);
  },
  message(message, { isLive, before }) {
    const about = message.metadata.bubble;
    if (about.principalId === session.me.principalId && about.runId) composer.arrived(about.runId);
    if (about.status === "finished" && about.runId) runs.ended(about.runId);
    if (about.status !== before?.metadata.bubble.status) runs.look();
    if (!isLive || before) return;
    for (const { type } of message.parts) {
      if (type === "data-bubble-participant") void people.load().catch(() => {});
      if (type === "data-bubble-title") void reload();
    }
  },
});

const events = new Events({ onState: connectionState, onRefused: refused });

new Bots();

// The connection

let telling = 0;

function connectionState(state) {
  $("app").dataset.connection = state;
  clearTimeout(telling);
  if (state === "open" || session.other) {
    if (!$("connection").hidden) announce("The connection is back.");
    return tell("");
  }
  telling = setTimeout(() => tell(navigator.onLine === false ? "You are offline. What you write is kept." : "The connection was lost. Trying again …"), 600);
}

function tell(text) {
  if (text && text !== $("connection").textContent) announce(text);
  setText($("connection"), text);
  $("connection").hidden = !text;
}

function refused(status) {
  if (session.other) return;
  if (status === 401) return toLogin();
  if (status === 404 && !may("events.subscribe")) return gone("This session may not read messages");
  gone(status === 404 ? "You have no access to this thread" : "The thread cannot be shown");
}

function gone(why) {
  close();
  setText($("welcome-title"), why);
  setText($("welcome-text"), "Choose another one, or begin one.");
  $("app").dataset.pane = "main";
  history.replaceState(null, "", "./");
  if (isFocusLost()) $("welcome-title").focus(); // which says it
  else announce(why);
  void threads.load();
}

function close() {
  if (thread) dismiss(thread.threadId);
  thread = null;
  turn += 1;
  composer.close();
  conversation.close();
  events.clear();
  people.clear();
  runs.watch(null);
  setText($("title"), "");
  clearTimeout(telling);
  tell("");
  $("thread").hidden = true;
  showPeople(false);
  $("welcome").hidden = false;
  threads.select(null);
}

// Threads

function go({ threadId, view: wanted = "messages" }) {
  const query = new URLSearchParams({ thread: threadId, ...(wanted !== "messages" && { view: wanted }) });
  history.pushState(null, "", `./?${query}`);
  void arrive({ isAsked: true });
}

/** Shows what the address says. */
async function arrive({ isAsked = false } = {}) {
  const query = new URLSearchParams(location.search);
  const threadId = query.get("thread");
  view = query.get("view") === "events" ? "events" : "messages";
  if (!threadId) {
    close();
    $("app").dataset.pane = "threads";
    return;
  }
  if (threadId !== thread?.threadId) await open(threadId);
  if (thread?.threadId !== threadId) return;
  $("app").dataset.pane = "main";
  showView();
  // On a phone the keyboard would cover half of what is to be read.
  if (isAsked && view === "messages") (narrow.matches ? $("title") : $("text")).focus();
}

async function open(threadId) {
  close();
  $("welcome").hidden = true;
  composer.open(threadId);
  const mine = turn;
  let found;
  try {
    found = await load(threadId);
  } catch (error) {
    if (turn === mine && error.status !== 401 && !session.other) gone(error.status === 404 ? "There is no such thread, or it is not for you" : error.message);
    return;
  }
  if (!found || turn !== mine) return;
  thread = found;
  $("thread").hidden = false;
  showPeople(!medium.matches);
  threads.select(threadId);
  const known = people.open(found).catch(() => {});
  showThread();
  await known;
  if (turn !== mine) return;
  conversation.open(found, roomOf(threadId));
  runs.watch(threadId);
}

const askedFor = () => new URLSearchParams(location.search).get("thread");

/** The thread, as soon as the server can be reached; null when the address says another one by then. */
async function load(threadId) {
  for (;;) {
    const found = await get(threadPath(threadId)).catch((error) => {
      if (error.status !== 0 && error.status !== 429 && error.status < 500) throw error;
    });
    if (askedFor() !== threadId) return null;
    if (found) return found;
    connectionState("waiting");
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN));
  }
}

async function reload() {
  const found = await get(threadPath(thread.threadId)).catch(() => null);
  if (found?.threadId !== thread?.threadId) return;
  thread = found;
  people.thread = { ...people.thread, title: found.title };
  showThread();
  await threads.load();
}

function showThread() {
  setText($("title"), titleOf(thread));
  threads.name(titleOf(thread));
  $("composer").hidden = !people.mayWrite;
  $("reading-only").hidden = people.mayWrite;
  if ($("composer").hidden && $("composer").contains(document.activeElement)) {
    $("title").focus();
    announce($("reading-only").textContent);
  }
  runs.show();
}

function showView() {
  const isEvents = view === "events";
  $("conversation").hidden = isEvents;
  $("event-view").hidden = !isEvents;
  $("as-messages").setAttribute("aria-pressed", String(!isEvents));
  $("as-events").setAttribute("aria-pressed", String(isEvents));
  if (isEvents) void load(thread.threadId).then((found) => found && view === "events" && events.open(found), () => {});
  else {
    events.close();
    conversation.log.stick();
    conversation.see();
  }
}

// The day

let today = dayOf(Date.now());

setInterval(() => {
  if (dayOf(Date.now()) === today) return;
  today = dayOf(Date.now());
  conversation.log.redate();
  threads.show();
}, 10_000);

// Buttons

$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("app").dataset.pane = "main";
  [$("text"), $("event-scroller"), $("scroller"), $("welcome-title")].find((one) => one.checkVisibility())?.focus();
});

$("as-messages").addEventListener("click", () => thread && go({ threadId: thread.threadId }));
$("as-events").addEventListener("click", () => thread && go({ threadId: thread.threadId, view: "events" }));

/** Beside the messages where there is room for both, otherwise over them. */
function showPeople(isShown) {
  $("people").hidden = !isShown;
  $("to-people").setAttribute("aria-expanded", String(isShown));
  $("main").inert = isShown && narrow.matches;
  conversation.see();
}

function turnPeople(isShown) {
  showPeople(isShown);
  if (medium.matches) (isShown ? $("close-people") : $("to-people")).focus();
}

$("to-people").addEventListener("click", () => turnPeople($("people").hidden));
$("close-people").addEventListener("click", () => turnPeople(false));
for (const size of [narrow, medium]) size.addEventListener("change", () => thread && showPeople(!medium.matches));

for (const button of document.querySelectorAll(".to-threads")) {
  button.addEventListener("click", () => {
    $("app").dataset.pane = "threads";
    $("thread-list").querySelector("[aria-current], a")?.focus();
  });
}

addEventListener("keydown", (event) => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (document.querySelector("dialog[open]")) return;
    $("app").dataset.pane = "threads";
    if (narrow.matches) showPeople(false); // they would cover it
    $("search").focus();
  } else if (event.key === "Escape" && medium.matches && !$("people").hidden && !document.querySelector("dialog[open]")) turnPeople(false);
});

$("log-out").addEventListener("click", async () => {
  if (session.other) {
    const text = `You are now signed in as ${marked(session.other.displayName)} in this browser. Reload the page to log out.`;
    return ask({ title: "Log out?", text, confirm: "Reload", action: () => location.reload() });
  }
  if (composer.hasUnsent) return askToLogOut("Log out?", "Something that you wrote was not sent. It is lost then.");
  if (await isUnsentElsewhere()) return askToLogOut("Log out?", "Something that you wrote in another tab was not sent. It is lost then.");
  try {
    await logOut();
  } catch (error) {
    if (!session.other) await askToLogOut("You are still logged in", error.message);
  }
});

const askToLogOut = (title, text) => ask({ title, text, confirm: "Log out", danger: true, action: logOut });

async function logOut() {
  isLeaving = true;
  try {
    await remove("v1/sessions");
  } catch (error) {
    if (error.status !== 401) {
      isLeaving = false;
      throw error;
    }
  }
  tellLogout();
  leave();
}

addEventListener("popstate", () => void arrive());

// The beginning

async function begin() {
  session.ended = toLoginAtOnce;
  session.replaced = replaced;
  for (;;) {
    try {
      session.me = await get("v1/whoami");
      composer.longest = (await get("v1/protocol")).limits.batchBytes;
      break;
    } catch (error) {
      if (error.status === 401) return;
      setText($("starting"), `${error.message} Trying again …`);
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN));
    }
  }
  session.ended = toLogin;
  setText($("me"), marked(session.me.displayName));
  $("me").title = `${marked(session.me.displayName)} (${session.me.principalId})`;
  $("open-bots").hidden = session.me.kind !== "user" || Boolean(session.me.capabilities ?? session.me.threads);
  for (const id of ["new-thread", "welcome-new"]) $(id).hidden = !may("threads.create");
  $("starting").hidden = true;
  $("app").hidden = false;
  await threads.load();
  const newest = threads.threads[0];
  if (!askedFor() && newest && !narrow.matches) {
    history.replaceState(null, "", `./?${new URLSearchParams({ thread: newest.threadId })}`);
  }
  if (!newest) {
    setText($("welcome-title"), "Nothing here yet");
    setText($("welcome-text"), "Begin a thread, and invite people and agents to it.");
  }
  await arrive();
}

await begin();
