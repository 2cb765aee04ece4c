// The parts of a message, each by its own kind. An unknown kind is shown as its JSON: nothing of a log is hidden.
import { attempt, make, setHtml, setText, textOf } from "./dom.js";
import { marked } from "./marks.js";
import { isTool, showTool } from "./tools.js";

const PICTURE = /^data:image\/(png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=\s]*$/i;
const FILE = /^data:[a-z0-9.+-]+\/[a-z0-9.+-]+[;,]/i;
const LINK = /^(https?:\/\/|mailto:)/i;

/** What a part becomes. Parts of one kind are changed in place, so that what is open in them stays open. */
export function kindOf(part) {
  if (typeof part?.type !== "string") return "unknown";
  if (isTool(part)) return "tool";
  if (part.type.startsWith("source-")) return "source";
  return KINDS[part.type] ?? (part.type.startsWith("data-") ? "data" : "unknown");
}

const KINDS = {
  __proto__: null, // a type may be `constructor`
  text: "text",
  reasoning: "reasoning",
  file: "file",
  "step-start": "step",
  "data-bubble-approval": "fact",
  "data-bubble-tool-result": "fact",
  "data-bubble-interrupt": "fact",
  "data-bubble-participant": "fact",
  "data-bubble-title": "fact",
  "bubble-run-end": "fact",
  "data-bubble-agent-event": "data",
  "data-bubble-artifact": "artifact",
};

const ENDS = { failed: "failed", interrupted: "was stopped", lost: "was lost" };

export const isFact = (message) => message.role === "system" && message.parts.every((part) => kindOf(part) === "fact");

const SHOW = {
  tool: showTool,
  text(element, part) {
    element.classList.add("rich");
    element.setAttribute("dir", "auto");
    element.classList.toggle("growing", part.state === "streaming");
    setHtml(element, part.html ?? "");
  },
  reasoning(element, part) {
    const details = element.firstElementChild ?? element.appendChild(make("details", {}, make("summary"), make("div", { class: "rich", dir: "auto" })));
    setText(details.firstElementChild, part.state === "streaming" ? "Thinking …" : "Thoughts");
    setHtml(details.lastElementChild, part.html ?? "");
  },
  file(element, part) {
    element.replaceChildren(file(textOf(part.url), part.filename || part.mediaType || "File", part.filename));
  },
  source(element, part) {
    element.replaceChildren("Source: ", link(textOf(part.url), part.title || part.filename || part.url || part.sourceId));
  },
  step() {},
  fact(element, part, message, room) {
    element.replaceChildren(...factWords(part, message, room));
  },
  artifact(element, part) {
    element.replaceChildren(...artifact(part));
  },
  data(element, part) {
    const [name, data] = part.type === "data-bubble-agent-event" ? [part.data?.name, part.data?.data] : [part.type.slice(5), part.data];
    element.replaceChildren(json(name, data));
  },
  unknown(element, part) {
    element.replaceChildren(json(part.type, part));
  },
};

/** A part that cannot be shown as what it is, is shown as its JSON; the next change of it is tried anew. */
export function showPart(element, part, message, room) {
  attempt(() => fill(element, part, message, room), () => {
    element.className = "part unknown";
    element.dataset.kind = "failed";
    element.replaceChildren(json(part?.type ?? "Unknown", part));
  });
}

function fill(element, part, message, room) {
  const kind = kindOf(part);
  if (element.dataset.kind !== kind || element.dataset.key !== keyOf(part)) {
    element.replaceChildren();
    element.className = `part ${kind}`;
    element.dataset.kind = kind;
    element.dataset.key = keyOf(part);
  }
  SHOW[kind](element, part, message, room);
}

const keyOf = (part) => textOf(part.toolCallId);

function factWords(part, message, room) {
  const data = part.data ?? {};
  const name = (id) => make("bdi", { class: "name" }, room.nameOf(textOf(id)));
  const other = data.byPrincipalId && data.byPrincipalId !== data.principalId ? [" (by ", name(data.byPrincipalId), ")"] : [];
  switch (part.type) {
    case "data-bubble-participant":
      return [name(data.principalId), data.action === "left" ? " left" : " joined", ...other];
    case "data-bubble-title":
      return [name(data.byPrincipalId), data.title ? " named the thread " : " took the thread's name away", data.title ? make("bdi", { class: "name" }, marked(data.title)) : ""];
    case "bubble-run-end":
      return [name(message.metadata.bubble.principalId), ` ${ENDS[textOf(message.metadata.bubble.outcome)] ?? "ended"} before it said anything`];
    case "data-bubble-interrupt":
      return [name(data.principalId), " asked to stop"];
    case "data-bubble-approval":
      return [name(data.principalId), data.approved ? " approved the call" : " rejected the call", data.reason ? ": " : "", data.reason ? make("bdi", {}, marked(data.reason)) : ""];
    default:
      return [name(data.principalId ?? message.metadata.bubble.principalId), " answered the call"];
  }
}

function artifact(part) {
  const data = part.data ?? {};
  if (data.deleted) return [make("p", { class: "quiet" }, "An artifact was deleted.")];
  const content = [];
  if (part.html !== undefined) {
    const rich = make("div", { class: "rich", dir: "auto" });
    setHtml(rich, part.html);
    content.push(rich);
  } else if (typeof data.text === "string") content.push(make("pre", { tabindex: "0" }, data.text));
  if (data.data !== undefined) content.push(json("Data", data.data));
  if (data.url) content.push(file(textOf(data.url), data.name || data.url, data.name));
  return [make("div", { class: "card-head" }, make("bdi", {}, marked(data.name || data.artifactId)), make("span", { class: "quiet" }, marked(data.mediaType ?? "artifact"))), ...content];
}

function json(name, value) {
  return make("details", {}, make("summary", {}, make("bdi", {}, marked(name))), make("pre", { tabindex: "0" }, marked(JSON.stringify(value, null, 2) ?? "")));
}

function link(url, label) {
  const text = make("bdi", {}, marked(label));
  return LINK.test(url) ? make("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text) : text;
}

function file(url, label, filename) {
  if (PICTURE.test(url)) return make("img", { src: url, alt: filename ?? "Image" });
  if (!FILE.test(url)) return link(url, label);
  return make("a", { href: url, download: filename || "file" }, make("bdi", {}, marked(label)));
}
