// Posts the code of the login link, or a token. A link logs in by itself, unless this browser is logged in already: then a person decides.
import { marked } from "./marks.js";
import { read, tellLogin, write } from "./tabs.js";

const form = document.getElementById("form");
const token = document.getElementById("token");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

const query = new URLSearchParams(location.search);
const thread = query.get("thread") ?? history.state?.thread ?? null;
let code = query.get("code");
// The code is taken out of the address at once, so that it stays neither on the screen nor in the history. The thread outlives a reload.
history.replaceState({ thread }, "", location.pathname);

/** Whether the page has sent us here because the session had ended. */
function takeNotice() {
  const isEnded = read("ended") !== null;
  write("ended", null);
  return isEnded;
}

function offer() {
  document.getElementById("by-link").hidden = !code;
  document.getElementById("by-token").hidden = Boolean(code);
  token.required = !code;
  (code ? button : token).focus();
}

async function reason(answer) {
  const said = answer.status === 401
    ? code ? "This link was used before, or is too old." : "This token is unknown, too old or revoked. Check that you have pasted all of it."
    : await answer.json().then(({ message }) => message, () => `The server answered ${answer.status}.`);
  return code ? `${said} Ask for another link, or paste a token.` : said;
}

async function logIn() {
  button.disabled = true;
  problem.textContent = "";
  try {
    const answer = await fetch("v1/sessions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(code ? { code } : { token: token.value.trim() }),
    });
    if (answer.ok) {
      tellLogin();
      location.replace(thread ? `./?${new URLSearchParams({ thread })}` : "./");
      return;
    }
    problem.textContent = await reason(answer);
    code = null;
    offer();
  } catch {
    problem.textContent = "The server cannot be reached.";
  } finally {
    button.disabled = false;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void logIn();
});

offer();
if (!code && takeNotice()) problem.textContent = "Your session has ended. Log in again.";
if (code) {
  const answer = await fetch("v1/whoami").catch(() => null);
  if (answer?.ok) {
    document.getElementById("who").textContent = marked((await answer.json()).displayName);
    document.getElementById("already").hidden = false;
  } else {
    await logIn();
  }
}
