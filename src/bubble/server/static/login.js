// Posts the code of the login link, or a token. Opening the page alone uses nothing up.

const form = document.getElementById("form");
const token = document.getElementById("token");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

let code = new URLSearchParams(location.search).get("code");
// The code is taken out of the address at once, so that it stays neither on the screen nor in the history.
history.replaceState(null, "", location.pathname);

function offer() {
  document.getElementById("by-link").hidden = !code;
  document.getElementById("by-token").hidden = Boolean(code);
  token.required = !code;
  (code ? button : token).focus();
}

async function reason(answer) {
  const said = code && answer.status === 401
    ? "This link was used before, or is too old."
    : await answer.json().then(({ message }) => message, () => `The server answered ${answer.status}.`);
  return code ? `${said} Ask for another link, or paste a token.` : said;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  problem.textContent = "";
  try {
    const answer = await fetch("v1/sessions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(code ? { code } : { token: token.value.trim() }),
    });
    if (answer.ok) {
      location.replace("./");
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
});

offer();
