/**
 * Tool calls that wait for a person, and the person's answer.
 */

import { byId, element, mark, several } from "./elements.js";
import { send } from "./stream.js";

export class Approvals {
  constructor() {
    this.panel = byId("approvals");
    this.list = byId("approvals-list");
    this.asked = byId("asked");
    /** @type {Map<string, HTMLElement>} */
    this.items = new Map();
  }

  /** @param {import("./store.js").Store} store */
  show(store) {
    const waiting = new Map();
    for (const run of store.tables.trees.list()) {
      for (const call of run.approvals) waiting.set(`${run.handle} ${call.call}`, { run, call });
    }
    for (const [key, { run, call }] of waiting) {
      if (this.items.has(key)) continue;
      const item = this.made(store.runtime?.url ?? "", run, call);
      this.items.set(key, item);
      this.list.append(item);
    }
    for (const [key, item] of this.items) {
      if (waiting.has(key)) continue;
      item.remove();
      this.items.delete(key);
    }
    this.panel.hidden = this.items.size === 0;
    const asked = this.items.size ? `${several(this.items.size, "tool call waits", "tool calls wait")} for you` : "";
    if (this.asked.textContent !== asked) this.asked.textContent = asked;
    document.title = this.items.size ? `(${this.items.size}) luftpause` : "luftpause";
  }

  made(runtime, run, call) {
    const said = element("span", { class: "wrong", attributes: { role: "status" } });
    const buttons = [
      ["Allow", true],
      ["Deny", false],
    ].map(([word, allow]) => {
      const attributes = { type: "button", "aria-label": `${word} ${call.tool} for ${run.task || run.handle}` };
      const button = element("button", { class: allow ? "primary" : "", attributes }, word);
      button.addEventListener("click", () => answer(allow));
      return button;
    });
    const answer = async (allow) => {
      for (const button of buttons) button.disabled = true;
      said.textContent = "";
      try {
        const { decided } = await send("approvals", { runtime, handle: run.handle, call: call.call, allow });
        said.textContent = decided ? (allow ? "allowed" : "denied") : "was answered already";
      } catch (error) {
        said.textContent = error instanceof Error ? error.message : String(error);
        for (const button of buttons) button.disabled = false;
      }
    };
    const why = call.reason ? ` — ${call.reason}` : "";
    return element(
      "li",
      {},
      element(
        "div",
        { class: "asked" },
        element("p", {}, element("strong", {}, call.tool), why),
        element("p", { class: "detail" }, ...whose(run), run.task || run.handle),
        element("pre", { attributes: { tabindex: "0", "aria-label": "Arguments" } }, call.arguments || "no arguments"),
      ),
      element("p", { class: "buttons" }, ...buttons, said),
    );
  }
}

/** Whose run it is, where that is somebody's: whoever operates this decides for others too. */
function whose(run) {
  return run.principal && run.principal !== "anonymous" ? [mark(run.principal), " "] : [];
}
