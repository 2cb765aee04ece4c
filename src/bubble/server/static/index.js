// Tells who is logged in, and logs out.

const caller = document.getElementById("caller");
const login = document.getElementById("login");
const logout = document.getElementById("logout");

async function show() {
  const answer = await fetch("v1/whoami");
  login.hidden = answer.ok;
  logout.hidden = !answer.ok;
  if (!answer.ok) {
    caller.textContent = "You are not logged in.";
    return;
  }
  const me = await answer.json();
  caller.textContent = `You are logged in as ${me.displayName} (${me.principalId}).`;
  logout.onclick = async () => {
    await fetch("v1/sessions", { method: "DELETE", headers: { "X-Bubble-CSRF": me.csrfToken } });
    await show();
  };
}

await show();
