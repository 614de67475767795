/**
 * Asks for the status every two seconds while somebody looks, and says so when no answer comes.
 */

import { duration } from "./elements.js";
import { render } from "./render.js";

const PERIOD_MS = 2000;
const PATIENCE_MS = 5000;

const content = document.getElementById("content");
const link = document.getElementById("link");
let answeredAt = 0;
let timer = 0;
let looking = false;

/** @param {string} state @param {string} text */
function say(state, text) {
  link.dataset.state = state;
  if (link.textContent !== text) link.textContent = text;
}

async function look() {
  if (looking) return;
  looking = true;
  try {
    const answer = await fetch("status", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status === 401) throw new Error("the scheduler asks for a token");
    if (!answer.ok) throw new Error(`the scheduler answered ${answer.status}`);
    render(await answer.json());
    answeredAt = performance.now();
    content.classList.remove("stale");
    content.setAttribute("aria-busy", "false");
    say("live", "live");
  } catch (error) {
    content.classList.add("stale");
    say("lost", lost(error));
  }
  looking = false;
  if (!document.hidden) timer = window.setTimeout(look, PERIOD_MS);
}

/** @param {unknown} error */
function lost(error) {
  const what = error instanceof Error && error.message.startsWith("the scheduler") ? error.message : "no answer";
  if (!answeredAt) return what;
  return `${what}, figures are ${duration((performance.now() - answeredAt) / 1000)} old`;
}

document.addEventListener("visibilitychange", () => {
  window.clearTimeout(timer);
  if (!document.hidden) look();
});

look();
