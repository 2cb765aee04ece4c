// A tool call as a card: what goes in, how it stands, what comes out, and, while it waits for a person, the decision.
import { append, readJson } from "./api.js";
import { act, announce, clone, isFocusLost, setText, textOf } from "./dom.js";
import { isSeen, marked } from "./marks.js";

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

export const toolName = (part) => marked(part.type === "dynamic-tool" ? part.toolName ?? "tool" : part.type.slice(5));

/** Whether somebody outside of the run has to do what the tool does: its agent has ended its turn well, and the call has no outcome. */
function wantsResult(part, { metadata: { bubble } }) {
  return part.state === "input-available" && bubble.status === "finished" && [undefined, "success"].includes(bubble.outcome);
}

function stateText(part, isOver, isWanted) {
  if (isWanted) return "Waits for a result";
  if (isOver && UNDECIDED.has(part.state)) return "No outcome";
  if (part.state === "approval-responded") return part.approval?.approved === true ? "Approved" : `Rejected${part.approval?.reason ? `: ${marked(part.approval.reason)}` : ""}`;
  if (part.state === "output-available" && part.preliminary === true) return "So far";
  return STATES[textOf(part.state)] ?? marked(part.state);
}

const words = (value) => marked(typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function showTool(element, part, message, room) {
  const card = element.firstElementChild ?? element.appendChild(newCard(part, message, room));
  const isOver = message.metadata.bubble.status === "finished";
  const isWaiting = part.state === "approval-requested" && !isOver;
  const isWanted = wantsResult(part, message);
  card.dataset.state = isWanted ? "approval-requested" : isOver && UNDECIDED.has(part.state) ? "none" : part.approval?.approved === false ? "output-denied" : textOf(part.state);
  showTitle(card.querySelector(".tool-title"), part.title);
  setText(card.querySelector(".tool-name"), toolName(part));
  setText(card.querySelector(".tool-state"), stateText(part, isOver, isWanted));
  showJson(card.querySelector(".tool-input"), part.input ?? part.rawInput);
  showJson(card.querySelector(".tool-output"), part.output);
  setText(card.querySelector(".tool-error"), part.state === "output-error" ? words(part.errorText ?? "") : "");
  showForm(card, ".decide", isWaiting && room.mayDecide(message, "tool_call_approval"));
  showForm(card, ".answer", isWanted && room.mayDecide(message, "tool_call_result"));
  if ((isWaiting || isWanted) && !card.dataset.opened) {
    card.dataset.opened = "true";
    card.querySelector(".tool-input").open = true; // who decides must see on what
  }
}

/** Who was about to answer hears what happened instead, and still has what they wrote. */
function showForm(card, selector, isShown) {
  const form = card.querySelector(selector);
  const isTaken = !form.hidden && !isShown;
  const hadFocus = form.contains(document.activeElement);
  form.hidden = !isShown;
  if (!isTaken || form.ariaBusy === "true") return;
  const happened = card.querySelector(".tool-state").textContent;
  const written = form.querySelector("input").value.trim();
  if (written) setText(card.querySelector(".undone"), `${happened}, before you sent: ${written}`);
  if (!hadFocus) return;
  card.focus();
  if (!written) announce(`${card.querySelector(".tool-name").textContent}: ${happened}`);
}

/** Runs what a form of a card is for. What went wrong is said beside it, and on the card if the form is gone. */
async function send(card, form, button, action) {
  const hadFocus = form.contains(document.activeElement);
  const problem = form.querySelector(".problem");
  const field = form.querySelector("input");
  form.ariaBusy = "true";
  await act(button, problem, async () => {
    await action();
    field.value = "";
    if (hadFocus) card.focus(); // the buttons are about to go
  });
  form.ariaBusy = null;
  if (!form.hidden) return;
  if (hadFocus && isFocusLost()) card.focus();
  if (problem.textContent) setText(card.querySelector(".undone"), `${problem.textContent} ${field.value && `You wrote: ${field.value}`}`.trim());
}

function showTitle(element, title) {
  element.hidden = !title || !isSeen(title);
  setText(element, element.hidden ? "" : marked(title));
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
  const decide = (button, decision) => send(card, form, button, () =>
    append(room.threadId, { type: "tool_call_approval", runId: message.metadata.bubble.runId, toolCallId: part.toolCallId, ...decision }).catch((error) => {
      throw error.code === "conflict" ? new Error("This was decided already.") : error;
    }));
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
  takeResult(card, card.querySelector(".answer"), part, message, room);
  return card;
}

function takeResult(card, form, part, message, room) {
  const field = form.querySelector("input");
  form.querySelector("button").setAttribute("aria-label", `Give the result of ${toolName(part)}`);
  form.onsubmit = (event) => {
    event.preventDefault();
    const outcome = { runId: message.metadata.bubble.runId, toolCallId: part.toolCallId, input: part.input ?? null, output: valueOf(field.value) };
    void send(card, form, form.querySelector("button"), () => append(room.threadId, { type: "tool_call_result", ...outcome }));
  };
}

/** What somebody wrote: JSON if it is, otherwise the text. */
function valueOf(text) {
  try {
    return readJson(text);
  } catch {
    return text;
  }
}
