/**
 * Follows the scheduler while somebody looks, and says so when it does not answer.
 */

import { Approvals } from "./approvals.js";
import { byId, coarse, plain } from "./elements.js";
import { Store } from "./store.js";
import { keepToken, Stream, token } from "./stream.js";
import { Tables } from "./tables.js";
import { Timeline } from "./timeline.js";
import { Trees } from "./trees.js";
import { showWelcome } from "./welcome.js";

const content = byId("content");
const link = byId("link");
const login = /** @type {HTMLFormElement} */ (byId("login"));
const store = new Store();
const tables = new Tables();
const timeline = new Timeline();
const trees = new Trees();
const approvals = new Approvals();
let heardAt = 0;
let startedAt = 0;
let isFirst = true;

trees.again = () => trees.show(store);

/** @param {string} state @param {string} text */
function say(state, text) {
  link.dataset.state = state;
  const shown = plain(text);
  if (link.textContent !== shown) link.textContent = shown;
}

function sayAbout() {
  if (!store.about) return;
  const { version, policy } = store.about;
  const isOld = link.dataset.state === "lost";
  const since = coarse((performance.now() - (isOld ? heardAt : startedAt)) / 1000);
  byId("about").textContent = isOld ? `these figures are ${since} old` : `${policy} · ${version} · up ${since}`;
}

/** @param {any} update */
function take(update) {
  if (isFirst) {
    store.forget();
    timeline.forget();
  }
  const changed = store.apply(update);
  timeline.take(update);
  if (update.about) startedAt = performance.now() - update.about.uptime_s * 1000;
  if (isFirst) for (const name of Object.keys(store.tables)) changed[name] ??= new Set();
  isFirst = false;
  tables.show(store, changed);
  if (changed.trees || changed.families || update.runtime) {
    trees.show(store);
    approvals.show(store);
    timeline.call(store.tables.trees.list());
  }
  showWelcome(store, [...timeline.lanes.all.values()].filter((lane) => lane.kind === "run").length);
  heardAt = performance.now();
  byId("figures").hidden = false;
  content.classList.remove("stale");
  content.setAttribute("aria-busy", "false");
  say("live", "live");
  sayAbout();
}

const stream = new Stream(`events${window.location.search}`, {
  begin: () => {
    isFirst = true;
    login.hidden = true;
  },
  take,
  lost: (why) => {
    content.classList.add("stale");
    say("lost", `${why}; asking again`);
    timeline.stand();
    sayAbout();
  },
  refused: () => {
    byId("figures").hidden = true;
    byId("token-wrong").textContent = token() ? "That token is not the right one." : "";
    login.hidden = false;
    content.setAttribute("aria-busy", "false");
    say("waiting", "asks for a token");
    byId("token").focus();
  },
});

login.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = /** @type {HTMLInputElement} */ (byId("token"));
  keepToken(field.value.trim());
  field.value = "";
  stream.start();
});

document.addEventListener("visibilitychange", () => (document.hidden ? stream.stop() : stream.start()));

/** @param {number} at */
function frame(at) {
  timeline.frame(at);
  window.requestAnimationFrame(frame);
}

window.requestAnimationFrame(frame);
window.setInterval(sayAbout, 1000);
stream.start();
