// The tabs of one browser have one session between them. They tell each other when somebody logs in or out, and what a tab keeps of what
// was written ends with the logout, in whichever tab that was.
//
// A tab that sleeps hears nothing, and the browser may bring it back much later with what it had kept. So a logout leaves a mark that all
// tabs see, and what was kept under another mark counts for nothing.

const LOGIN = "bubble:login";
const LOGOUT = "bubble:logout";
const KEPT = "bubble:kept:";

// Storage may be switched off, or full: then things are kept as long as the page lives, and the server says what other tabs did.
function attempt(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

const readMark = () => attempt(() => localStorage.getItem(LOGOUT)) ?? "";
let mark = readMark();

/** Tells the other tabs that who is logged in may be another now. */
export function tellLogin() {
  attempt(() => localStorage.setItem(LOGIN, newMark()));
}

/** Forgets what this tab keeps, and has the others forget and leave. */
export function tellLogout() {
  mark = newMark();
  attempt(() => localStorage.setItem(LOGOUT, mark));
  forget();
}

/** Whether somebody logged out since this page began. */
export const isLoggedOut = () => readMark() !== mark;

export function onLogin(action) {
  addEventListener("storage", ({ key }) => { if (key === LOGIN) action(); });
}

/** `action` when somebody has logged out in another tab; a tab that slept meanwhile learns it when it is looked at. */
export function onLogout(action) {
  const look = () => { if (isLoggedOut()) action(); };
  addEventListener("storage", look);
  document.addEventListener("visibilitychange", look);
}

const seen = attempt(() => new BroadcastChannel("bubble:seen"));

/** Tells the other tabs that somebody has seen a thread up to a seq. */
export function tellSeen(who, threadId, seq) {
  seen?.postMessage({ who, threadId, seq });
}

export function onSeen(action) {
  seen?.addEventListener("message", ({ data }) => action(data));
}

const unsent = attempt(() => new BroadcastChannel("bubble:unsent"));
const ANSWER = 250; // milliseconds that the other tabs have to answer

/** Whether another tab has something that was not sent. One that sleeps does not answer. */
export function isUnsentElsewhere() {
  return new Promise((resolve) => {
    const hear = ({ data }) => { if (data === "yes") resolve(true); };
    unsent?.addEventListener("message", hear);
    unsent?.postMessage("anything?");
    setTimeout(() => {
      unsent?.removeEventListener("message", hear);
      resolve(false);
    }, ANSWER);
  });
}

/** Tells other tabs that ask whether this one has something that was not sent. */
export function onAskedForUnsent(hasUnsent) {
  unsent?.addEventListener("message", ({ data }) => { if (data === "anything?" && hasUnsent()) unsent.postMessage("yes"); });
}

/** What this tab keeps under the name, over a reload too; null if nothing. */
export function read(name) {
  const text = attempt(() => sessionStorage.getItem(KEPT + name));
  const kept = text && attempt(() => JSON.parse(text));
  return kept?.mark === mark ? kept.value : null;
}

/** The names under which this tab keeps something. */
export function names() {
  const keys = attempt(() => Object.keys(sessionStorage)) ?? [];
  return keys.filter((key) => key.startsWith(KEPT)).map((key) => key.slice(KEPT.length));
}

/** Keeps a value; a null, empty or missing one is none. Whether there was room for it. */
export function write(name, value) {
  const isNothing = value === null || value === undefined || value.length === 0;
  const isKept = attempt(() => {
    if (isNothing) sessionStorage.removeItem(KEPT + name);
    else sessionStorage.setItem(KEPT + name, JSON.stringify({ mark, value }));
    return true;
  });
  return isKept ?? false;
}

export function forget() {
  for (const name of names()) write(name, null);
}

const newMark = () => `${Date.now()}-${Math.random()}`;

/** What was kept before somebody logged out is not for who comes now. */
function forgetOld() {
  for (const name of names()) if (read(name) === null) write(name, null);
}

forgetOld();
