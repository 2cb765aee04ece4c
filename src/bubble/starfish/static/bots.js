// One's own bots, and the tokens that their programs come with.
import { get, patch, post, remove, session } from "./api.js";
import { $, act, briefTime, copy, make, setText } from "./dom.js";
import { marked } from "./marks.js";

const path = (botId, rest = "") => `v1/principals/${encodeURIComponent(botId)}${rest}`;

export class Bots {
  constructor() {
    this.problem = $("bots-problem");
    $("open-bots").addEventListener("click", () => this.open());
    $("close-bots").addEventListener("click", () => $("bots").close());
    $("new-bot").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.create();
    });
  }

  async open() {
    setText(this.problem, "");
    $("bots").showModal();
    await this.load().catch((error) => setText(this.problem, error.message));
  }

  async load() {
    const { principals } = await get(`v1/principals?${new URLSearchParams({ ownerPrincipalId: session.me.principalId, limit: "200" })}`);
    $("no-bots").hidden = principals.length > 0;
    $("bot-list").replaceChildren(...principals.map((bot) => this.item(bot)));
  }

  async create() {
    const name = $("bot-name");
    const id = $("bot-id");
    await act($("new-bot").querySelector("button"), this.problem, async () => {
      const chosen = id.value.trim();
      await post("v1/principals", { kind: "bot", displayName: name.value.trim(), ...(chosen && { principalId: chosen }) });
      name.value = id.value = "";
      await this.load();
    });
  }

  item(bot) {
    const tokens = make("ul", { class: "tokens" });
    const fresh = make("div", { class: "fresh", role: "status" });
    const mint = make("button", { type: "button" }, "Mint a token");
    mint.onclick = () => act(mint, this.problem, async () => {
      const minted = await post(path(bot.principalId, "/tokens"), { name: "from the page" });
      showOnce(fresh, minted.token);
      await this.showTokens(bot, tokens);
    });
    const toggle = make("button", { type: "button", class: "plain" }, bot.disabledAt ? "Enable" : "Disable");
    toggle.onclick = () => act(toggle, this.problem, async () => {
      await patch(path(bot.principalId), { disabled: !bot.disabledAt });
      await this.load();
    });
    const details = make(
      "details", {},
      make("summary", {}, make("bdi", { class: "name" }, marked(bot.displayName)), make("code", { class: "quiet" }, bot.principalId), bot.disabledAt ? make("span", { class: "badge" }, "disabled") : ""),
      fresh, tokens, make("div", { class: "buttons" }, mint, toggle),
    );
    details.addEventListener("toggle", () => { if (details.open) void act(mint, this.problem, () => this.showTokens(bot, tokens)); });
    return make("li", { "data-id": bot.principalId }, details);
  }

  async showTokens(bot, list) {
    const { tokens } = await get(path(bot.principalId, "/tokens"));
    list.replaceChildren(...tokens.filter(({ revokedAt }) => !revokedAt).map((token) => {
      const revoke = make("button", { type: "button", class: "plain danger-text" }, "Revoke");
      revoke.onclick = () => act(revoke, this.problem, async () => {
        await remove(path(bot.principalId, `/tokens/${encodeURIComponent(token.tokenId)}`));
        await this.showTokens(bot, list);
      });
      const used = token.lastUsedAt ? `used ${briefTime(token.lastUsedAt)}` : "never used";
      return make("li", {}, make("bdi", {}, marked(token.name ?? token.tokenId)), make("span", { class: "quiet small" }, ` made ${briefTime(token.createdAt)}, ${used}`), revoke);
    }));
    if (!list.children.length) list.append(make("li", { class: "quiet" }, "No tokens."));
  }
}

function showOnce(element, token) {
  const field = make("input", { readonly: "", "aria-label": "The new token", class: "secret" });
  field.value = token;
  const button = make("button", { type: "button", class: "primary" }, "Copy");
  button.onclick = () => copy(token, button);
  element.replaceChildren(make("p", {}, "This token is shown once. Keep it where its program finds it."), make("div", { class: "row" }, field, button));
  field.focus();
  field.select();
}
