// One message as an element, made once and changed in place.
import { attempt, clone, exactTime, make, setAvatar, setText, timeText } from "./dom.js";
import { reactionsOf } from "./api.js";
import { marked } from "./marks.js";
import { isFact, kindOf, showPart } from "./parts.js";

const TOGETHER = 180_000; // milliseconds
const OUTCOMES = { failed: "This failed", interrupted: "Stopped", lost: "Lost: its author went away" };

export function messageElement(message, room) {
  const element = isFact(message) ? make("article", { class: "message fact-line" }, make("div", { class: "parts" }), make("time")) : clone("t-message");
  element.dataset.id = message.id;
  updateMessage(element, message, room);
  return element;
}

/** Each piece by itself: one that cannot be shown takes no other with it. */
export function updateMessage(element, message, room) {
  attempt(() => showTime(element.querySelector("time"), message));
  attempt(() => showParts(element.querySelector(".parts"), message, room));
  if (element.classList.contains("fact-line")) return;
  attempt(() => showHead(element, message, room));
  attempt(() => showFoot(element.querySelector(".foot"), message, room));
}

function showTime(time, message) {
  const about = message.metadata.bubble;
  setText(time, timeText(about.createdAt));
  if (time.dateTime !== about.createdAt) {
    time.dateTime = about.createdAt;
    time.title = exactTime(about.createdAt);
  }
}

export function showHead(element, message, room) {
  if (element.classList.contains("fact-line")) return;
  const id = message.metadata.bubble.principalId;
  const name = room.nameOf(id);
  setAvatar(element.querySelector(".avatar"), id, name);
  setText(element.querySelector(".author"), name);
  const badge = element.querySelector(".badge");
  badge.hidden = room.kindOf(id) !== "bot";
  setText(badge, "bot");
  element.querySelector(".continued").hidden = !room.goesOn(message);
  element.classList.toggle("mine", id === room.me);
  element.setAttribute("aria-label", `${name}, ${timeText(message.metadata.bubble.createdAt)}`);
}

function showParts(container, message, room) {
  message.parts.forEach((part, index) => {
    const element = container.children[index] ?? container.appendChild(make("div"));
    showPart(element, part, message, room);
  });
  while (container.children.length > message.parts.length) container.lastElementChild.remove();
}

function showFoot(foot, message, room) {
  const about = message.metadata.bubble;
  const children = [];
  if (about.error) children.push(make("p", { class: "problem" }, marked(about.error)));
  if (about.status === "finished" && OUTCOMES[about.outcome]) children.push(make("span", { class: `outcome ${about.outcome}` }, OUTCOMES[about.outcome]));
  const reactions = reactionsOf(about);
  for (const [emoji, who] of reactions) {
    children.push(make("span", { class: "reaction", title: who.map(room.nameOf).join(", ") }, make("bdi", {}, marked(emoji)), make("span", { class: "count" }, ` ${who.length}`)));
  }
  const key = JSON.stringify([about.error, about.status, about.outcome, reactions]);
  if (foot.dataset.key === key) return;
  foot.dataset.key = key;
  foot.hidden = children.length === 0;
  foot.replaceChildren(...children);
}

export const endId = (runId) => `end of ${runId}`;

/** What stands in the log for a run that ended badly and said nothing. */
export function endOf({ runId, principalId, outcome, finishedSeq, finishedAt }) {
  const place = { firstSeq: finishedSeq, lastSeq: finishedSeq, createdAt: finishedAt, updatedAt: finishedAt };
  return { id: endId(runId), role: "system", parts: [{ type: "bubble-run-end" }], metadata: { bubble: { principalId, runId, outcome, status: "finished", ...place } } };
}

/** Whether a message goes on under the head of the one before it. */
export function joins(before, message) {
  if (!before || isFact(before) || isFact(message)) return false;
  const [one, other] = [before.metadata.bubble, message.metadata.bubble];
  if (one.principalId !== other.principalId || (OUTCOMES[one.outcome] && one.runId !== other.runId)) return false;
  return new Date(other.createdAt) - new Date(one.updatedAt) < TOGETHER;
}

/** What is read out when a message is complete. */
export function spoken(element, message, room) {
  const texts = [...element.querySelectorAll(".part.text")].map((part) => part.textContent.trim());
  const tools = message.parts.filter((part) => kindOf(part) === "tool").length;
  const text = texts.join(" ").slice(0, 600) || (tools ? `${tools} tool call${tools === 1 ? "" : "s"}` : "");
  return text && `${room.nameOf(message.metadata.bubble.principalId)}: ${text}`;
}
