/**
 * The plain tables. A row is made again only when it changed, so that nothing flickers and a reader keeps its place.
 */

import { brief, byId, coarse, detail, duration, element, mark, memory, numberCell, several } from "./elements.js";

const PLACES_MAX = 40;
const WINDOW_AFTER = { outage: "an outage", refusal: "a refusal" };
const PHASES = [
  ["generating", "a turn is in flight"],
  ["paused", "out on a tool, will come back"],
  ["idle", "no turn in flight, out on no tool"],
];

class TableView {
  /** @param {string} id @param {(row: any) => HTMLElement[]} cells @param {string} nothing */
  constructor(id, cells, nothing) {
    this.body = byId(id);
    this.cells = cells;
    this.columns = this.body.parentElement?.querySelectorAll("th[scope=col]").length ?? 1;
    this.nothing = element("tr", {}, element("td", { class: "empty", span: this.columns }, nothing));
    /** @type {Map<string, HTMLElement>} */
    this.rows = new Map();
  }

  /** @param {import("./store.js").Table} table @param {Set<string>} changed */
  show(table, changed) {
    let before = null;
    for (const key of table.order) {
      let row = this.rows.get(key);
      if (!row || changed.has(key)) {
        const made = element("tr", {}, ...this.cells(table.rows.get(key)));
        if (row) row.replaceWith(made);
        this.rows.set(key, made);
        row = made;
      }
      const wanted = before ? before.nextSibling : this.body.firstChild;
      if (wanted !== row) this.body.insertBefore(row, wanted);
      before = row;
    }
    for (const [key, row] of this.rows) {
      if (table.rows.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    this.body.parentElement?.classList.toggle("bare", table.order.length === 0);
    if (table.order.length) this.nothing.remove();
    else this.body.append(this.nothing);
  }
}

export class Tables {
  constructor() {
    this.views = {
      replicas: new TableView("replicas", replicaCells, "No engine is declared or up."),
      held: new TableView("held", heldCells, "No turn is held: each one went out as it came."),
      callers: new TableView("callers", callerCells, "Nobody has an open turn."),
      models: new TableView("models", modelCells, "No launcher is connected."),
      tools: new TableView("tools", toolCells, "No run has been out on a tool yet."),
      peers: new TableView("peers", peerCells, "No other process holds the link."),
    };
    this.runs = byId("runs");
    this.devices = byId("devices");
  }

  /** @param {import("./store.js").Store} store @param {Record<string, Set<string>>} changed */
  show(store, changed) {
    for (const [name, view] of Object.entries(this.views)) {
      if (changed[name] || !view.body.firstChild) view.show(store.tables[name], changed[name] ?? new Set());
    }
    if (changed.runs || !this.runs.firstChild) {
      const rows = store.tables.runs.list();
      this.runs.replaceChildren(...PHASES.map(([phase, meaning]) => runsRow(rows, phase, meaning)));
    }
    if (changed.devices) this.devices.replaceChildren(...store.tables.devices.list().map(deviceItem));
    if (changed.replicas || changed.held || changed.runs || !byId("totals").firstChild) showTotals(store);
    byId("models-panel").hidden = store.tables.models.order.length === 0;
    byId("tools-panel").hidden = store.tables.tools.order.length === 0;
    byId("peers-panel").hidden = store.tables.peers.order.length === 0;
  }
}

/** @param {import("./store.js").Store} store */
function showTotals(store) {
  const replicas = store.tables.replicas.list();
  const runs = store.tables.runs.list();
  const held = sum(store.tables.held.list(), "count");
  const well = replicas.filter((replica) => replica.healthy).length;
  const foreign = sum(replicas, "foreign");
  byId("totals").replaceChildren(
    total("turns in flight", sum(replicas, "in_flight")),
    total("turns held", held, held > 0),
    total("runs generating", counted(runs, "generating")),
    total("runs out on tools", counted(runs, "paused")),
    total("foreign requests", foreign, foreign > 0),
    total("replicas healthy", `${well} / ${replicas.length}`, well < replicas.length),
  );
}

/** @param {string} name @param {number | string} value @param {boolean} attention */
function total(name, value, attention = false) {
  return element("div", attention ? { class: "attention" } : {}, element("dt", {}, name), element("dd", {}, value));
}

/** A number that a narrow screen has no room for. @param {string | number} content */
function spareCell(content) {
  return element("td", { class: "number spare" }, content);
}

/** @param {any} replica */
function replicaCells(replica) {
  const engine = replica.engine === "auto" ? "" : replica.engine;
  const about = [replica.kind, engine, replica.models.join(", ")].filter(Boolean).join(" · ");
  return [
    element("th", { scope: "row" }, replica.name, detail(about)),
    element("td", {}, mark(replica.state), ...(replica.why ? [detail(replica.why)] : [])),
    element("td", {}, roomSentence(replica), places(replica)),
    spareCell(replica.foreign ? replica.foreign : "–"),
    spareCell(replica.load ? replica.load.running : "–"),
    spareCell(replica.load ? replica.load.waiting : "–"),
    spareCell(brief(replica.turns_placed)),
  ];
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
function heldCells(held) {
  return [
    element("th", { scope: "row" }, held.caller, detail(held.class)),
    numberCell(held.count),
    numberCell(coarse(held.oldest_s)),
    spareCell(held.expected_s === null ? "–" : held.expected_s === 0 ? "soon" : coarse(held.expected_s)),
    element("td", { class: "sentence" }, held.reason),
  ];
}

/** @param {any[]} all @param {string} phase @param {string} meaning */
function runsRow(all, phase, meaning) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, phase, detail(meaning)),
    numberCell(counted(all, phase, "interactive")),
    numberCell(counted(all, phase, "batch")),
  );
}

/** @param {any} caller */
function callerCells(caller) {
  const anybody = caller.principal === "anonymous";
  return [
    element("th", { scope: "row" }, caller.caller, ...(anybody ? [] : [detail(caller.principal)])),
    numberCell(caller.in_flight),
    numberCell(caller.held),
  ];
}

/** @param {any} model */
function modelCells(model) {
  const lasting = [model.pinned && "pinned", model.persistent && "never unloaded for others"].filter(Boolean);
  const state = [mark(model.state)];
  if (model.eta_s === 0) state.push(detail("longer than estimated"));
  else if (model.eta_s !== null) state.push(detail(`about ${coarse(model.eta_s)} still`));
  if (model.ttl_left_s !== null) state.push(detail(`idle, unloaded in ${coarse(model.ttl_left_s)}`));
  if (model.retry_after_s !== null) state.push(detail(`parked, tried again in ${coarse(model.retry_after_s)}`));
  const why = model.why || (model.failures ? several(model.failures, "failure") : "");
  const launcher = model.connected ? model.launcher : `${model.launcher}, not connected`;
  return [
    element("th", { scope: "row" }, model.name, detail([launcher, ...lasting].join(" · "))),
    element("td", {}, ...state),
    numberCell(model.leases.in_flight),
    spareCell(model.leases.waiting),
    spareCell(model.leases.expected),
    numberCell(model.memory ? `${model.memory_measured ? "" : "~"}${memory(model.memory)}` : "?"),
    element("td", { class: "sentence" }, why),
  ];
}

/** @param {any} device */
function deviceItem(device) {
  const meter = element("meter", {
    attributes: { min: "0", max: String(Math.max(1, device.budget)), value: String(device.taken), "aria-hidden": "true" },
  });
  const said = `${device.launcher} ${device.device}: ${memory(device.taken)} of ${memory(device.budget)}`;
  return element("li", {}, meter, said);
}

/** @param {any} tool */
function toolCells(tool) {
  return [
    element("th", { scope: "row" }, tool.tool, ...(tool.server ? [detail(tool.server)] : [])),
    numberCell(tool.running),
    spareCell(tool.returned),
    numberCell(duration(tool.p50_s)),
    spareCell(duration(tool.p90_s)),
    spareCell(duration(tool.expected_return_s)),
  ];
}

/** @param {any} peer */
function peerCells(peer) {
  return [
    element("th", { scope: "row" }, peer.name),
    element("td", {}, peer.connected ? mark("up") : mark("lost, in its grace", "down")),
    numberCell(peer.open_turns),
  ];
}

/** @param {any[]} all @param {string} phase @param {string} [serviceClass] */
function counted(all, phase, serviceClass) {
  return sum(
    all.filter((row) => row.phase === phase && (!serviceClass || row.class === serviceClass)),
    "count",
  );
}

/** @param {any[]} rows @param {string} field */
function sum(rows, field) {
  return rows.reduce((total, row) => total + row[field], 0);
}
