// One dialog for everything that is asked: a name, or whether something is really meant.
import { $ } from "./dom.js";

let open = null; // {threadId, isBusy, isDismissed} of the question that is asked

/** The thread is not looked at any more, so nothing is asked about it. What is being done already is done to its end. */
export function dismiss(threadId) {
  if (open?.threadId !== threadId) return;
  open.isDismissed = true;
  if (!open.isBusy) $("ask").close();
}

/**
 * Opens the dialog. `title` is a text, or texts and elements; `threadId` is the thread that is meant, if one is. `action(value)` may fail:
 * then the dialog says why and stays. Resolves to whether it was done.
 */
export function ask({ threadId = null, title, text = "", label = "", value = "", confirm, danger = false, required = true, action }) {
  const dialog = $("ask");
  const form = dialog.querySelector("form");
  const field = $("ask-value");
  const problem = dialog.querySelector(".problem");
  const [cancel, submit] = dialog.querySelectorAll(".buttons button");
  $("ask-title").replaceChildren(...[title].flat());
  $("ask-text").textContent = text;
  $("ask-text").hidden = !text;
  $("ask-field").hidden = !label;
  $("ask-label").textContent = label;
  field.value = value;
  field.required = Boolean(label) && required;
  submit.textContent = confirm;
  submit.className = danger ? "danger" : "primary";
  problem.textContent = "";
  let done = false;
  const one = (open = { threadId, isBusy: false, isDismissed: false });
  form.onsubmit = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    one.isBusy = true;
    try {
      await action(field.value.trim());
      done = true;
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
      if (one.isDismissed) dialog.close();
    } finally {
      submit.disabled = false;
      one.isBusy = false;
    }
  };
  cancel.onclick = () => dialog.close();
  dialog.showModal();
  (label ? field : danger ? cancel : submit).focus();
  field.select();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      open = null;
      resolve(done);
    };
  });
}
