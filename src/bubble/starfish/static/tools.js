// A tool call as a card: what goes in, how it stands, what comes out, and, while it waits for a person, the decision.
import { append } from "./api.js";
import { act, clone, setText } from "./dom.js";

const STATES = {
  "input-streaming": "Being called",
  "input-available": "Running",
  "approval-requested": "Waits for approval",
  "output-available": "Done",
  "output-error": "Failed",
  "output-denied": "Not allowed",
};
const UNDECIDED = new Set(["input-streaming", "input-available", "approval-requested"]);

export const isTool = (part) => part.type === "dynamic-tool" || part.type.startsWith("tool-");

export const toolName = (part) => String(part.type === "dynamic-tool" ? part.toolName ?? "tool" : part.type.slice(5));

function stateText(part, isOver) {
  if (isOver && UNDECIDED.has(part.state)) return "No outcome";
  if (part.state === "approval-responded") return part.approval?.approved === true ? "Approved" : `Rejected${part.approval?.reason ? `: ${part.approval.reason}` : ""}`;
  if (part.state === "output-available" && part.preliminary === true) return "So far";
  return STATES[part.state] ?? String(part.state);
}

const words = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function showTool(element, part, message, room) {
  const card = element.firstElementChild ?? element.appendChild(newCard(part, message, room));
  const isOver = message.metadata.bubble.status === "finished";
  const isWaiting = part.state === "approval-requested" && !isOver;
  card.dataset.state = isOver && UNDECIDED.has(part.state) ? "none" : part.approval?.approved === false ? "output-denied" : part.state;
  setText(card.querySelector(".tool-name"), part.title ? `${part.title} (${toolName(part)})` : toolName(part));
  setText(card.querySelector(".tool-state"), stateText(part, isOver));
  showJson(card.querySelector(".tool-input"), part.input ?? part.rawInput);
  showJson(card.querySelector(".tool-output"), part.output);
  setText(card.querySelector(".tool-error"), part.state === "output-error" ? words(part.errorText ?? "") : "");
  const form = card.querySelector(".decide");
  form.hidden = !(isWaiting && room.mayDecide(message));
  if (isWaiting && !card.dataset.opened) {
    card.dataset.opened = "true";
    card.querySelector(".tool-input").open = true; // who decides must see on what
  }
}

function showJson(details, value) {
  details.hidden = value === undefined;
  if (value !== undefined) setText(details.querySelector("pre"), words(value));
}

function newCard(part, message, room) {
  const card = clone("t-tool");
  const name = toolName(part);
  card.setAttribute("aria-label", `Tool call: ${name}`);
  const form = card.querySelector(".decide");
  const approve = form.querySelector(".approve");
  const reject = form.querySelector(".reject");
  const why = form.querySelector(".why");
  const reason = why.querySelector("input");
  const problem = form.querySelector(".problem");
  const decide = (button, decision) =>
    act(button, problem, () =>
      append(room.threadId, { type: "tool_call_approval", runId: message.metadata.bubble.runId, toolCallId: part.toolCallId, ...decision }).catch((error) => {
        throw error.code === "conflict" ? new Error("This was decided already.") : error;
      }),
    );
  approve.setAttribute("aria-label", `Approve ${name}`);
  reject.setAttribute("aria-label", `Reject ${name}`);
  approve.onclick = () => decide(approve, { approved: true });
  reject.onclick = () => {
    why.hidden = !why.hidden;
    reject.setAttribute("aria-expanded", String(!why.hidden));
    if (!why.hidden) reason.focus();
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    const text = reason.value.trim();
    void decide(why.querySelector("button"), text ? { approved: false, reason: text } : { approved: false });
  };
  return card;
}
