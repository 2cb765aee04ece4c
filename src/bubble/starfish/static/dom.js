// Elements, and the words in them. Everything goes in as text; `setHtml` is the one exception, for what the server has sanitised.

export const $ = (id) => document.getElementById(id);

/** Any JSON value as text: strings as they are, anything else as its JSON. `String` throws for numbers kept as written, and for objects with members like `toString`. */
export const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

/** Does it; what goes wrong is told to developers only, so that what comes after it is done as well. */
export function attempt(action, otherwise = () => {}) {
  try {
    return action();
  } catch (error) {
    console.error(error);
    return otherwise();
  }
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, textOf(value));
  element.append(...children.map((child) => (child instanceof Node ? child : textOf(child))));
  return element;
}

export function clone(id) {
  return $(id).content.firstElementChild.cloneNode(true);
}

const policy = globalThis.trustedTypes?.createPolicy("bubble", { createHTML: (html) => html }) ?? { createHTML: (html) => html };
const shown = new WeakMap();

/** Makes the element show HTML of the server's sanitiser; children that stay the same stay the same nodes, with what is selected in them. */
export function setHtml(element, html) {
  if (shown.get(element) === html) return;
  shown.set(element, html);
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  // Those of the page come first: a thread's title, and the day.
  for (const heading of template.content.querySelectorAll("h1, h2, h3, h4, h5, h6")) heading.setAttribute("aria-level", String(Math.min(6, Number(heading.tagName[1]) + 2)));
  for (const wide of template.content.querySelectorAll("pre, table")) wide.setAttribute("tabindex", "0");
  const fresh = [...template.content.childNodes];
  const there = [...element.childNodes];
  let same = 0;
  while (same < fresh.length && same < there.length && there[same].isEqualNode(fresh[same])) same += 1;
  for (const node of there.slice(same)) node.remove();
  element.append(...fresh.slice(same));
}

export function setText(element, value) {
  const text = textOf(value);
  if (element.textContent !== text) element.textContent = text;
}

export const isFilled = (value) => typeof value === "string" && value.trim() !== "";

/** Two letters for somebody, and one of eight colours, always the same. */
export function setAvatar(element, id, name) {
  const words = String(name || id).trim().split(/[\s._:@-]+/u).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)].map((word) => [...word][0]) : [...(words[0] ?? "?")].slice(0, 2);
  setText(element, letters.join("").toUpperCase());
  let hue = 0;
  for (const letter of String(id)) hue = (hue * 31 + letter.codePointAt(0)) % 8;
  element.className = `avatar hue-${hue}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const full = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const short = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

export const dayOf = (time) => new Date(time).toDateString();

export function timeText(time) {
  return clock.format(new Date(time));
}

export function exactTime(time) {
  return exact.format(new Date(time));
}

export function dayText(time) {
  const date = new Date(time);
  const now = new Date();
  if (dayOf(date) === dayOf(now)) return "Today";
  if (dayOf(date) === dayOf(now.getTime() - 86_400_000)) return "Yesterday";
  return (date.getFullYear() === now.getFullYear() ? weekday : full).format(date);
}

export function briefTime(time) {
  return dayOf(time) === dayOf(Date.now()) ? timeText(time) : short.format(new Date(time));
}

/** Says something to those who listen instead of looking. */
export function announce(text) {
  $("announcer").textContent = text;
}

/** Whether what had the focus cannot have it any more. The browser takes it away later from what is hidden now. */
export function isFocusLost() {
  const element = document.activeElement;
  return element === null || element === document.body || !element.checkVisibility();
}

export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    flash(button, "Copied");
  } catch {
    flash(button, "Cannot copy");
  }
}

function flash(button, text) {
  const before = button.dataset.label ?? button.textContent;
  button.dataset.label = before;
  button.textContent = text;
  announce(text);
  setTimeout(() => { button.textContent = before; }, 1_500);
}

/** Runs an action of a button: busy meanwhile, and what went wrong is said beside it. The button keeps the focus, if nothing else took it. */
export async function act(button, problem, action) {
  if (button.getAttribute("aria-busy") === "true") return undefined;
  const hadFocus = document.activeElement === button;
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  problem.textContent = "";
  try {
    return await action();
  } catch (error) {
    problem.textContent = error.message;
    return undefined;
  } finally {
    button.disabled = false;
    button.removeAttribute("aria-busy");
    if (hadFocus && isFocusLost()) button.focus();
  }
}
