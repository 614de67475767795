/**
 * What a newcomer does next, while nothing has come through.
 */

import { byId, element } from "./elements.js";

/** @param {import("./store.js").Store} store @param {number} lanes how many runs the timeline knows */
export function showWelcome(store, lanes) {
  const { tables, about } = store;
  const placed = tables.replicas.list().some((replica) => replica.turns_placed > 0);
  const isNew = !placed && !lanes && !tables.held.order.length && !tables.trees.order.length;
  byId("welcome").hidden = !isNew;
  for (const id of ["timeline-panel", "totals", "held-panel", "columns"]) byId(id).hidden = isNew;
  if (!isNew || !about) return;
  const { llm, mcp } = about.doors;
  const model = tables.replicas.list()[0]?.models[0];
  const all = [
    ["Agents with a loop of their own, as the base URL of their model:", llm ? `${llm}/v1` : "the LLM door, /v1"],
    ["MCP clients, for sub-agents that this runtime keeps:", mcp[0] ? `${mcp[0]}/mcp` : "the MCP door, /mcp"],
    ["Clients that luftpause knows, with their own settings:", "luftpause connect"],
    ...(llm && model ? [["Or a first turn, from a terminal:", firstTurn(llm, model)]] : []),
  ];
  const steps = byId("welcome-steps");
  for (const [words, text] of all.slice(steps.children.length)) steps.append(step(words, text));
}

/** @param {string} llm @param {string} model */
function firstTurn(llm, model) {
  const said = JSON.stringify({ model, messages: [{ role: "user", content: "Name three rivers." }] });
  const body = said.replaceAll("'", "\\u0027");
  return `curl ${llm}/v1/chat/completions -H 'content-type: application/json' -d '${body}'`;
}

/** @param {string} words @param {string} text */
function step(words, text) {
  const button = element("button", { attributes: { type: "button", "aria-label": `Copy ${text}` } }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    window.setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return element("li", {}, words, element("p", { class: "copy" }, element("code", {}, text), button));
}
