/**
 * From a status to rows. Knows the shape of `/status` and nothing of how it is fetched.
 */

import { duration, element, mark } from "./elements.js";

const PLACES_MAX = 40;
const WINDOW_AFTER = { outage: "an outage", refusal: "a refusal" };
const PHASES = [
  ["generating", "a turn is in flight"],
  ["paused", "out on a tool, will come back"],
  ["idle", "its last turn asked for nothing"],
];

/** @param {any} status */
export function render(status) {
  fill("about", [`${status.policy} · ${status.version} · up ${duration(status.uptime_s)}`]);
  fill("totals", totals(status));
  fill("replicas", orNone(status.replicas.map(replicaRow), 6, "No replica is declared."));
  fill("held", orNone(status.held.map(heldRow), 5, "No turn is held: each one went out as it came."));
  fill("runs", PHASES.map(([phase, meaning]) => runsRow(status.runs, phase, meaning)));
  fill("tools", orNone(status.tools.map(toolRow), 6, "No run has been out on a tool yet."));
}

/** @param {string} id @param {(Node | string)[]} children */
function fill(id, children) {
  document.getElementById(id)?.replaceChildren(...children);
}

/** @param {HTMLElement[]} rows @param {number} span @param {string} sentence */
function orNone(rows, span, sentence) {
  return rows.length ? rows : [element("tr", {}, element("td", { class: "empty", span }, sentence))];
}

/** @param {any} status */
function totals(status) {
  const held = sum(status.held, "count");
  const well = status.replicas.filter((replica) => replica.healthy).length;
  return [
    total("turns in flight", sum(status.replicas, "in_flight")),
    total("turns held", held, held > 0),
    total("runs generating", runs(status.runs, "generating")),
    total("runs paused on tools", runs(status.runs, "paused")),
    total("replicas healthy", `${well} / ${status.replicas.length}`, well < status.replicas.length),
  ];
}

/** @param {string} name @param {number | string} value @param {boolean} attention */
function total(name, value, attention = false) {
  return element("div", attention ? { class: "attention" } : {}, element("dt", {}, name), element("dd", {}, value));
}

/** @param {any} replica */
function replicaRow(replica) {
  const about = [replica.kind, replica.engine === "auto" ? "" : replica.engine].filter(Boolean).join(" · ");
  return element(
    "tr",
    {},
    element(
      "th",
      { scope: "row" },
      replica.name,
      element("span", { class: "detail" }, about),
      element("span", { class: "detail" }, replica.models.join(", ")),
    ),
    element("td", {}, mark(replica.state)),
    element("td", {}, roomSentence(replica), places(replica)),
    element("td", { class: "number" }, replica.load ? replica.load.running : "–"),
    element("td", { class: "number" }, replica.load ? replica.load.waiting : "–"),
    element("td", { class: "number" }, replica.turns_placed),
  );
}

/** @param {any} replica */
function roomSentence(replica) {
  if (!replica.healthy && replica.in_flight === 0) return "none, takes no turns now";
  const of = replica.capacity === null ? ", no cap" : ` of ${replica.capacity}`;
  const kept = replica.kept_for_paused ? `, ${replica.kept_for_paused} kept` : "";
  const narrow = replica.window ? `, window after ${WINDOW_AFTER[replica.window.after]}` : "";
  return `${replica.in_flight}${of}${kept}${narrow}`;
}

/** Draws each place as a box: taken, kept or free. @param {any} replica */
function places(replica) {
  const { in_flight: taken, capacity, kept_for_paused: kept } = replica;
  const kinds = [];
  for (let place = 0; place < taken && place <= PLACES_MAX; place += 1) {
    kinds.push(capacity !== null && place >= capacity ? "over" : "taken");
  }
  if (capacity === null) {
    if (replica.healthy) kinds.push("open");
  } else {
    for (let place = taken; place < capacity && kinds.length <= PLACES_MAX; place += 1) {
      kinds.push(place < taken + kept ? "kept" : "free");
    }
  }
  const shown = kinds.slice(0, PLACES_MAX).map((kind) => element("span", { class: `place ${kind}` }));
  if (kinds.length > PLACES_MAX) shown.push(element("span", { class: "detail" }, "…"));
  return element("div", { class: "places", hidden: true }, ...shown);
}

/** @param {any} held */
function heldRow(held) {
  return element(
    "tr",
    {},
    element("td", {}, mark(held.class)),
    element("th", { scope: "row" }, held.caller),
    element("td", { class: "number" }, held.count),
    element("td", { class: "number" }, duration(held.oldest_s)),
    element("td", {}, held.reason),
  );
}

/** @param {any[]} all @param {string} phase @param {string} meaning */
function runsRow(all, phase, meaning) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, phase, element("span", { class: "detail" }, meaning)),
    element("td", { class: "number" }, runs(all, phase, "interactive")),
    element("td", { class: "number" }, runs(all, phase, "batch")),
  );
}

/** @param {any} tool */
function toolRow(tool) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, tool.tool, element("span", { class: "detail" }, tool.server)),
    element("td", { class: "number" }, tool.running),
    element("td", { class: "number" }, tool.returned),
    element("td", { class: "number" }, duration(tool.p50_s)),
    element("td", { class: "number" }, duration(tool.p90_s)),
    element("td", { class: "number" }, duration(tool.expected_return_s)),
  );
}

/** @param {any[]} all @param {string} phase @param {string} [serviceClass] */
function runs(all, phase, serviceClass) {
  const chosen = all.filter((row) => row.phase === phase && (!serviceClass || row.class === serviceClass));
  return sum(chosen, "count");
}

/** @param {any[]} rows @param {string} field */
function sum(rows, field) {
  return rows.reduce((total, row) => total + row[field], 0);
}
