/**
 * Draws the lanes, as many as are in sight, and lets a person move about in them by pointer or by keyboard.
 */

import { byId, coarse, duration, plain, shortId } from "./elements.js";
import { Lanes } from "./lanes.js";
import { fitted, HEIGHTS, WORDS } from "./phases.js";

const ROW = 22;
const AXIS = 22;
const ROWS_MIN = 5;
const ROWS_MAX = 13;
const SPANS_S = [5, 10, 20, 30, 60, 120, 300, 600, 900];
const STEPS_S = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300];
const FRAME_MS = 50;
const SORT_MS = 500;
const KEPT_MS = 15 * 60000;

export class Timeline {
  constructor() {
    this.lanes = new Lanes();
    this.box = byId("timeline");
    this.scroller = byId("lanes");
    this.height = byId("lanes-height");
    this.bars = /** @type {HTMLCanvasElement} */ (byId("bars"));
    this.axis = /** @type {HTMLCanvasElement} */ (byId("axis"));
    this.filter = /** @type {HTMLInputElement} */ (byId("lane-filter"));
    this.said = byId("timeline-said");
    this.count = byId("lane-count");
    /** How many are in sight: it grows with what there is, and what stands below it is not moved again and again. */
    this.rows = ROWS_MIN;
    this.span = 60000;
    /** The right edge while not live. */
    this.end = 0;
    this.live = true;
    this.offset = 0;
    this.clock = 0;
    /** Since when nothing is heard any more; 0 while something is. */
    this.stoodAt = 0;
    /** @type {import("./lanes.js").Lane[]} */
    this.shown = [];
    this.sortedAt = -Infinity;
    this.drawnAt = -Infinity;
    this.dirty = true;
    this.selected = null;
    this.hovered = null;
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.listen();
    this.restyle();
  }

  forget() {
    this.lanes.forget();
    this.offset = 0;
    this.selected = null;
    this.sort(true);
  }

  /** @param {any} update */
  take(update) {
    const here = performance.now();
    this.stoodAt = 0;
    if (!this.offset || update.now_ms - here > this.offset) this.offset = update.now_ms - here;
    else this.offset += (update.now_ms - here - this.offset) / 20;
    this.clock = Date.now() - update.now_ms;
    this.lanes.take(update.lanes ?? [], update.changes ?? [], update.now_ms);
    this.dirty = true;
  }

  /** @param {any[]} runs sub-agents, whose lanes are named by their tasks */
  call(runs) {
    this.lanes.call(runs);
    this.dirty = true;
  }

  stand() {
    this.stoodAt ||= performance.now();
  }

  get now() {
    return (this.stoodAt || performance.now()) + this.offset;
  }

  get until() {
    return this.live ? this.now : this.end;
  }

  /** Draws if there is anything new to draw; called for every frame. @param {number} at */
  frame(at) {
    const moving = this.live && !this.calm.matches && this.shown.length > 0;
    if (at - this.drawnAt < FRAME_MS || !(this.dirty || moving)) return;
    if (at - this.sortedAt > SORT_MS) this.sort();
    this.dirty = false;
    this.drawnAt = at;
    this.draw();
  }

  sort(now = false) {
    this.sortedAt = now ? -Infinity : performance.now();
    const until = this.until;
    this.shown = this.lanes.shown(until - this.span, until, this.filter.value.trim());
    this.height.style.height = `${Math.max(1, this.shown.length) * ROW}px`;
    this.rows = Math.min(ROWS_MAX, Math.max(this.rows, this.shown.length));
    this.scroller.style.height = `${this.rows * ROW}px`;
    const count = this.shown.length > ROWS_MAX ? `${this.shown.length} rows` : "";
    if (this.count.textContent !== count) this.count.textContent = count;
    this.dirty = true;
  }

  restyle() {
    const style = getComputedStyle(document.documentElement);
    const names = ["text", "quiet", "line", "surface", "focus"];
    const phases = Object.keys(HEIGHTS);
    this.colours = Object.fromEntries(
      [...names, ...phases.map((phase) => `phase-${phase}`)].map((name) => [name, style.getPropertyValue(`--${name}`)]),
    );
    this.dirty = true;
  }

  get gutter() {
    return this.box.clientWidth < 560 ? 92 : 190;
  }

  /** @param {HTMLCanvasElement} canvas @param {number} height */
  sized(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    const width = this.scroller.clientWidth;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  draw() {
    const until = this.until;
    const from = until - this.span;
    const left = this.gutter;
    const width = this.scroller.clientWidth - left;
    const x = (at) => left + ((at - from) / this.span) * width;
    this.drawAxis(from, until, x);
    const height = this.scroller.clientHeight;
    const top = this.scroller.scrollTop;
    this.bars.style.transform = `translateY(${top}px)`;
    const pen = this.sized(this.bars, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    if (!this.shown.length) this.drawNothing(pen, height);
    this.drawGrid(pen, from, until, x, height);
    const first = Math.floor(top / ROW);
    for (let place = first; place < this.shown.length && place * ROW < top + height; place += 1) {
      this.drawLane(pen, this.shown[place], place * ROW - top, { from, until, x });
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} height */
  drawNothing(pen, height) {
    pen.fillStyle = this.colours.quiet;
    const words = this.filter.value.trim() ? "No run that fits was at work in this time." : "No run was at work in this time.";
    pen.fillText(words, this.gutter, height / 2);
  }

  step() {
    const least = this.span / (this.scroller.clientWidth < 560 ? 3 : 7) / 1000;
    return (STEPS_S.find((step) => step >= least) ?? 300) * 1000;
  }

  drawAxis(from, until, x) {
    const pen = this.sized(this.axis, AXIS);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = this.colours.quiet;
    const step = this.step();
    for (let wall = Math.ceil((from + this.clock) / step) * step; wall <= until + this.clock; wall += step) {
      const words = new Date(wall).toLocaleTimeString([], { hour12: false });
      const at = x(wall - this.clock);
      if (at > this.gutter + 2 && at + pen.measureText(words).width < this.scroller.clientWidth) {
        pen.fillText(words, at + 4, AXIS / 2);
      }
    }
  }

  drawGrid(pen, from, until, x, height) {
    const step = this.step();
    pen.fillStyle = this.colours.line;
    for (let wall = Math.ceil((from + this.clock) / step) * step; wall <= until + this.clock; wall += step) {
      const at = x(wall - this.clock);
      if (at > this.gutter) pen.fillRect(Math.round(at), 0, 1, height);
    }
  }

  drawLane(pen, lane, y, { from, until, x }) {
    const chosen = this.selected?.lane === lane;
    this.drawLabel(pen, lane, y, chosen);
    const present = Math.min(until, this.now);
    const edge = this.gutter;
    for (let place = Math.max(0, lane.placeAt(from)); place < lane.changes.length; place += 1) {
      const change = lane.changes[place];
      if (change.at > until) break;
      const share = HEIGHTS[change.phase];
      if (!share) continue;
      const next = lane.changes[place + 1];
      const start = Math.max(edge, x(change.at));
      const stop = Math.max(start + 1, x(Math.min(next ? next.at : present, until)));
      if (stop <= edge) continue;
      const width = change.phase === "failed" ? Math.min(4, stop - start) : stop - start - (stop - start > 4 ? 1 : 0);
      const height = Math.round(ROW * share);
      pen.fillStyle = this.colours[`phase-${change.phase}`];
      pen.fillRect(start, y + (ROW - height) / 2, width, height);
      if (chosen && this.selected.change === change) {
        pen.strokeStyle = this.colours.focus;
        pen.lineWidth = 2;
        pen.strokeRect(start - 1, y + 2, Math.max(4, width) + 2, ROW - 4);
      }
    }
  }

  drawLabel(pen, lane, y, chosen) {
    const left = 2 + Math.min(4, lane.depth) * 10;
    const middle = y + ROW / 2;
    const isModel = lane.kind === "model";
    const caller = lane.task || (lane.caller === "anonymous" ? "" : lane.caller);
    const called = isModel ? lane.name : caller || shortId(lane.name);
    const tail = called === lane.name ? "" : lane.name.slice(-4);
    const room = this.gutter - left - 12 - (tail ? pen.measureText(tail).width + 6 : 0);
    const words = fitted(pen, called, room);
    pen.fillStyle = chosen ? this.colours.focus : this.colours.text;
    pen.fillText(words, left, middle);
    if (!tail) return;
    pen.fillStyle = this.colours.quiet;
    pen.fillText(tail, left + pen.measureText(words).width + 6, middle);
  }

  listen() {
    new ResizeObserver(() => this.sort(true)).observe(this.scroller);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    this.scroller.addEventListener("scroll", () => this.redraw());
    this.filter.addEventListener("input", () => this.sort(true));
    byId("zoom-in").addEventListener("click", () => this.zoom(-1));
    byId("zoom-out").addEventListener("click", () => this.zoom(1));
    byId("go-live").addEventListener("click", () => (this.live ? this.hold(this.now) : this.goLive()));
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.bars.addEventListener("pointerdown", (event) => this.grab(event));
    this.bars.addEventListener("pointermove", (event) => this.point(event));
    this.bars.addEventListener("pointerleave", () => this.say(this.selected));
  }

  redraw() {
    this.drawnAt = -Infinity;
    this.dirty = true;
  }

  /** @param {number} step @param {number} [around] share of the width that stays where it is */
  zoom(step, around = 1) {
    const place = SPANS_S.findIndex((span) => span * 1000 >= this.span);
    const span = SPANS_S[Math.min(SPANS_S.length - 1, Math.max(0, place + step))] * 1000;
    if (!this.live) this.end = this.bounded(this.end + (span - this.span) * (1 - around));
    this.span = span;
    byId("zoom-span").textContent = span < 60000 ? `${span / 1000} s` : `${span / 60000} min`;
    this.sort(true);
  }

  /** @param {number} end */
  bounded(end) {
    return Math.min(this.now, Math.max(this.now - KEPT_MS + this.span / 2, end));
  }

  /** @param {number} end */
  hold(end) {
    this.live = false;
    this.end = this.bounded(end);
    this.pressed();
  }

  goLive() {
    this.live = true;
    this.pressed();
  }

  pressed() {
    const button = byId("go-live");
    button.setAttribute("aria-pressed", String(this.live));
    button.textContent = this.live ? "Live" : "Go live";
    this.sort(true);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (event.ctrlKey) {
      event.preventDefault();
      const share = (event.offsetX - this.gutter) / (this.scroller.clientWidth - this.gutter);
      this.zoom(Math.sign(event.deltaY), Math.min(1, Math.max(0, share)));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX / (this.scroller.clientWidth - this.gutter)) * this.span);
    }
  }

  /** @param {number} by */
  pan(by) {
    const end = this.until + by;
    if (end >= this.now) this.goLive();
    else this.hold(end);
  }

  /** @param {PointerEvent} event */
  grab(event) {
    if (event.button !== 0) return;
    this.selected = this.found(event);
    this.say(this.selected);
    const { clientX } = event;
    const end = this.until;
    const move = (moved) => {
      const by = ((clientX - moved.clientX) / (this.scroller.clientWidth - this.gutter)) * this.span;
      if (Math.abs(clientX - moved.clientX) > 4) this.pan(end + by - this.until);
    };
    const drop = () => window.removeEventListener("pointermove", move);
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", drop, { once: true });
    this.redraw();
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (event.buttons) return;
    this.say(this.found(event) ?? this.selected);
  }

  /** @param {PointerEvent} event */
  found(event) {
    const lane = this.shown[Math.floor((event.offsetY + this.scroller.scrollTop) / ROW)];
    if (!lane) return null;
    const share = (event.offsetX - this.gutter) / (this.scroller.clientWidth - this.gutter);
    const change = share < 0 ? lane.last : lane.changes[lane.placeAt(this.until - this.span * (1 - share))];
    return change ? { lane, change } : null;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.move(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(-1);
    else if (event.key === "-") this.zoom(1);
    else if (event.key === "PageUp") this.pan(-this.span / 2);
    else if (event.key === "PageDown") this.pan(this.span / 2);
    else if (event.key === "Home") this.hold(this.now - KEPT_MS + this.span);
    else if (event.key === "End") this.goLive();
    else if (event.key === "Escape") this.selected = null;
    else return;
    event.preventDefault();
    this.redraw();
  }

  /** Goes to another lane, or to another phase of the lane. @param {number} down @param {number} right */
  move(down, right) {
    if (!this.shown.length) return;
    const at = this.selected ? this.shown.indexOf(this.selected.lane) : -1;
    const place = Math.min(this.shown.length - 1, Math.max(0, at < 0 ? 0 : at + down));
    const lane = this.shown[place];
    let change = this.selected?.change;
    if (at < 0 || down) change = lane.changes[lane.placeAt(change ? change.at : this.until)] ?? lane.last;
    else change = lane.changes[lane.changes.indexOf(change) + right] ?? change;
    this.selected = change ? { lane, change } : null;
    this.reveal(place, right ? change : undefined);
    this.say(this.selected);
  }

  /** @param {number} place @param {any} change */
  reveal(place, change) {
    const y = place * ROW;
    if (y < this.scroller.scrollTop) this.scroller.scrollTop = y;
    else if (y + ROW > this.scroller.scrollTop + this.scroller.clientHeight) {
      this.scroller.scrollTop = y + ROW - this.scroller.clientHeight;
    }
    if (!change) return;
    if (change.at < this.until - this.span) this.hold(change.at + this.span * 0.8);
    else if (change.at > this.until) this.hold(change.at + this.span * 0.2);
  }

  /** Tells of a phase in words, for all. @param {any} where */
  say(where) {
    this.dirty = true;
    let words = "";
    if (where) {
      const { lane, change } = where;
      const next = lane.changes[lane.changes.indexOf(change) + 1];
      const took = (next ? next.at : this.now) - change.at;
      const run = [lane.task, lane.name, lane.caller, lane.model].filter(Boolean).join(" · ");
      const who = lane.kind === "model" ? `model ${lane.name}` : run;
      const what = `${WORDS[change.phase] ?? change.phase}${change.detail ? ` (${plain(change.detail)})` : ""}`;
      const since = `${coarse((this.now - change.at) / 1000)} ago`;
      words = `${who}: ${what}, ${next ? duration(took / 1000) : `for ${coarse(took / 1000)} so far`}, began ${since}`;
    }
    if (this.said.textContent !== words) this.said.textContent = words;
  }
}
