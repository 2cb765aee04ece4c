// What people and bots are called, also those who take no part any more.
import { get } from "./api.js";
import { marked } from "./marks.js";

export class Names {
  /** `known(id)` finds who takes part; `onLearned()` when it has come what somebody else is called. */
  constructor({ known, onLearned }) {
    this.known = known;
    this.onLearned = onLearned;
    this.others = new Map(); // id → what is known of them; null while nothing is
  }

  principal(id) {
    const found = this.known(id) ?? this.others.get(id);
    if (found === undefined) void this.lookUp(id);
    return found ?? null;
  }

  of(id) {
    return marked(this.principal(id)?.displayName ?? id);
  }

  async lookUp(id) {
    this.others.set(id, null);
    if (id.startsWith("system:")) return;
    try {
      this.others.set(id, await get(`v1/principals/${encodeURIComponent(id)}`));
      this.onLearned();
    } catch (error) {
      if (error.status === 0) this.others.delete(id); // asked for again when it is shown again
      // otherwise nobody that we may know of: the id is shown
    }
  }
}
