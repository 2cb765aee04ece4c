// One dialog for everything that is asked: a name, or whether something is really meant.
import { $ } from "./dom.js";

/** Opens the dialog. `title` is a text, or texts and elements. `action(value)` may fail: then the dialog says why and stays. Resolves to whether it was done. */
export function ask({ title, text = "", label = "", value = "", confirm, danger = false, required = true, action }) {
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
  form.onsubmit = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await action(field.value.trim());
      done = true;
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      submit.disabled = false;
    }
  };
  cancel.onclick = () => dialog.close();
  dialog.showModal();
  (label ? field : danger ? cancel : submit).focus();
  field.select();
  return new Promise((resolve) => { dialog.onclose = () => resolve(done); });
}
