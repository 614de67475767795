/**
 * Runs and what works for them, as a tree that opens and closes. Only the rows in sight are in the document.
 */

import { brief, byId, coarse, element, mark, shortId } from "./elements.js";

const ROW = 40;
const SPARE = 4;
const OPEN_MAX = 12;
const OVER = new Set(["Finished", "Failed", "Cancelled", "idle", ""]);
const LOOKS = {
  Running: "generating",
  AwaitingApproval: "held",
  Finished: "idle",
  Failed: "down",
  Cancelled: "idle",
};

export class Trees {
  constructor() {
    this.body = byId("trees");
    this.space = byId("trees-height");
    /** @type {Map<string, boolean>} */
    this.opened = new Map();
    this.rows = [];
    this.active = "";
    this.body.addEventListener("scroll", () => this.draw());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  /** @param {import("./store.js").Store} store */
  show(store) {
    const nodes = built(store);
    this.rows = this.flattened(nodes);
    byId("trees-panel").hidden = this.rows.length === 0 && !store.runtime?.away;
    byId("trees-about").textContent = about(store);
    byId("trees-grid").setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.space.style.height = `${this.rows.length * ROW}px`;
    this.draw(true);
  }

  /** @param {Map<string, any>} nodes */
  flattened(nodes) {
    const rows = [];
    const seen = new Set();
    const add = (node, level) => {
      if (seen.has(node.id)) return;
      seen.add(node.id);
      const isOpen = this.opened.get(node.id) ?? (node.children.length > 0 && node.children.length <= OPEN_MAX);
      rows.push({ node, level, isOpen });
      if (isOpen) for (const child of node.children) add(child, level + 1);
    };
    const roots = [...nodes.values()].filter((node) => !node.parent);
    for (const node of roots.sort((one, other) => Number(other.atWork) - Number(one.atWork))) add(node, 1);
    return rows;
  }

  draw(anew = false) {
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW) - SPARE);
    const last = Math.min(this.rows.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / ROW) + SPARE);
    const held = this.body.contains(document.activeElement);
    const there = new Map([...this.space.children].map((row) => [row.dataset.run, row]));
    if (!this.rows.some((row) => row.node.id === this.active)) this.active = this.rows[0]?.node.id ?? "";
    for (let place = first; place < last; place += 1) {
      const row = this.rows[place];
      const key = row.node.id;
      const old = there.get(key);
      there.delete(key);
      const said = anew || !old ? JSON.stringify([place, row.level, row.isOpen, row.node.shown, key === this.active]) : "";
      if (old && (!anew || old.dataset.said === said) && old.dataset.place === String(place)) continue;
      const made = this.made(row, place, said);
      if (old) old.replaceWith(made);
      else this.space.append(made);
    }
    for (const row of there.values()) row.remove();
    if (held && !this.body.contains(document.activeElement)) this.focus(false);
  }

  made({ node, level, isOpen }, place, said) {
    const family = node.children.length > 0;
    const costs = node.costs;
    const name = element("span", { attributes: { role: "rowheader" }, class: "tree-name" });
    name.style.paddingInlineStart = `${(level - 1) * 1.1}rem`;
    name.append(
      element("span", { class: "twist", hidden: true, data: { open: String(isOpen), family: String(family) } }),
      element("span", { class: "tree-words" }, element("span", { class: "tree-task" }, node.label), ...node.about),
    );
    const cells = [costs.turns, costs.tool_calls, costs.prompt_tokens, costs.completion_tokens].map((count) =>
      element("span", { class: "number", attributes: { role: "gridcell" } }, count === undefined ? "–" : brief(count)),
    );
    const seconds = costs.turn_seconds === undefined ? "–" : coarse(costs.turn_seconds + costs.tool_seconds);
    const row = element(
      "div",
      {
        class: "tree-row",
        attributes: {
          role: "row",
          "aria-level": String(level),
          "aria-rowindex": String(place + 2),
          tabindex: node.id === this.active ? "0" : "-1",
          ...(family ? { "aria-expanded": String(isOpen) } : {}),
        },
        data: { run: node.id, place: String(place), said },
      },
      name,
      element("span", { attributes: { role: "gridcell" } }, mark(node.state, LOOKS[node.state] ?? node.state)),
      ...cells,
      element("span", { class: "number", attributes: { role: "gridcell" } }, seconds),
    );
    row.style.transform = `translateY(${place * ROW}px)`;
    return row;
  }

  focus(scroll = true) {
    const place = this.rows.findIndex((row) => row.node.id === this.active);
    if (place < 0) return;
    if (scroll) {
      const y = place * ROW;
      if (y < this.body.scrollTop) this.body.scrollTop = y;
      else if (y + ROW > this.body.scrollTop + this.body.clientHeight) {
        this.body.scrollTop = y + ROW - this.body.clientHeight;
      }
    }
    this.draw(true);
    for (const row of this.space.children) if (row.dataset.run === this.active) row.focus({ preventScroll: true });
  }

  /** @param {string} run @param {boolean} open */
  toggle(run, open) {
    this.opened.set(run, open);
    this.again?.();
    this.active = run;
    this.focus();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const row = event.target.closest?.(".tree-row");
    if (!row) return;
    const found = this.rows.find((each) => each.node.id === row.dataset.run);
    if (found) this.toggle(found.node.id, !found.isOpen);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const place = this.rows.findIndex((row) => row.node.id === this.active);
    const row = this.rows[place];
    if (!row) return;
    const go = (to) => {
      this.active = this.rows[Math.min(this.rows.length - 1, Math.max(0, to))].node.id;
      this.focus();
    };
    const family = row.node.children.length > 0;
    if (event.key === "ArrowDown") go(place + 1);
    else if (event.key === "ArrowUp") go(place - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(this.rows.length - 1);
    else if (event.key === "ArrowRight" && family && !row.isOpen) this.toggle(row.node.id, true);
    else if (event.key === "ArrowRight" && family) go(place + 1);
    else if (event.key === "ArrowLeft" && family && row.isOpen) this.toggle(row.node.id, false);
    else if (event.key === "ArrowLeft") go(this.rows.findIndex((each) => each.node.children.includes(row.node)));
    else if (event.key === "Enter" && family) this.toggle(row.node.id, !row.isOpen);
    else return;
    event.preventDefault();
  }
}

/** @param {import("./store.js").Store} store */
function about(store) {
  if (!store.runtime) return "";
  const { url, away, omitted } = store.runtime;
  if (away) return `The runtime at ${url} does not answer: ${away}`;
  return omitted ? `${omitted} older runs are not shown` : "";
}

/** Puts the families of the LLM door and the runs of the runtime into one forest. @param {any} store */
function built(store) {
  /** @type {Map<string, any>} */
  const nodes = new Map();
  const node = (id) => {
    if (!nodes.has(id)) nodes.set(id, { id, label: shortId(id), about: [], state: "", costs: {}, children: [], parent: null });
    return nodes.get(id);
  };
  const below = (child, parent) => {
    if (child.parent || child === parent || isAbove(child, parent)) return;
    child.parent = parent;
    parent.children.push(child);
  };
  for (const run of store.tables.trees.list()) {
    const made = node(run.handle);
    made.label = run.task || shortId(run.handle);
    made.about = [element("span", { class: "detail" }, [run.model, run.error].filter(Boolean).join(" · "))];
    made.state = run.status;
    made.costs = run.subtree;
  }
  for (const family of store.tables.families.list()) {
    const parent = node(family.run);
    known(parent, family, family.subtree);
    if (family.omitted) parent.about = [element("span", { class: "detail" }, `${family.omitted} more below`)];
    for (const child of family.children) {
      const made = node(child.run);
      known(made, child, child.own);
      below(made, parent);
    }
  }
  for (const run of store.tables.trees.list()) {
    const above = run.parent ?? run.above;
    if (above) below(node(run.handle), node(above));
  }
  for (const each of nodes.values()) {
    each.atWork = !OVER.has(each.state);
    each.state ||= "not known";
    each.shown = [each.label, each.state, each.costs, each.about.map((about) => about.textContent)];
  }
  return nodes;
}

/** Takes in what the scheduler knows of a run, where the runtime told nothing. */
function known(made, member, costs) {
  made.state ||= member.phase ?? "";
  if (made.costs.turns === undefined) made.costs = costs;
}

function isAbove(one, other) {
  for (let each = other; each; each = each.parent) if (each === one) return true;
  return false;
}
