/**
 * The lanes of the timeline: which runs and models there are, and what each was doing when. Times in milliseconds of
 * the scheduler's clock.
 */

import { plain } from "./elements.js";

const KEPT_MS = 15 * 60000;
const LANES_MAX = 3000;
const QUIET = new Set(["idle", "gone"]);

/** @typedef {{phase: string, at: number, detail: string}} Change */

export class Lane {
  /** @param {any[]} row */
  constructor(row) {
    [this.number, this.name, this.kind, this.serviceClass, this.caller, this.model, this.parent] = row;
    [this.name, this.caller, this.model, this.parent] = [this.name, this.caller, this.model, this.parent ?? ""].map(plain);
    /** @type {Change[]} */
    this.changes = [];
    this.depth = 0;
    this.call("");
  }

  /** @param {string} task what a sub-agent is to do, empty for other runs */
  call(task) {
    this.task = task;
    this.words = `${task} ${this.name} ${this.caller} ${this.model} ${this.serviceClass}`.toLowerCase();
  }

  /** @returns {Change | undefined} */
  get last() {
    return this.changes[this.changes.length - 1];
  }

  /** The place of the change that counts at a moment; -1 before the first. @param {number} at */
  placeAt(at) {
    let low = 0;
    let high = this.changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.changes[middle].at <= at) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Whether anything is to be seen between two moments. @param {number} from @param {number} to */
  isBusy(from, to) {
    if (this.kind === "model") return true;
    for (let place = Math.max(0, this.placeAt(from)); place < this.changes.length; place += 1) {
      const change = this.changes[place];
      if (change.at > to) return false;
      if (!QUIET.has(change.phase)) return true;
    }
    return false;
  }
}

export class Lanes {
  constructor() {
    this.forget();
  }

  forget() {
    /** @type {Map<number, Lane>} */
    this.all = new Map();
    /** @type {Map<string, string>} */
    this.tasks = new Map();
    this.version = 0;
  }

  /** Names the lanes of sub-agents by what they do. @param {any[]} runs */
  call(runs) {
    this.tasks = new Map(runs.map((run) => [plain(run.handle), plain(run.task).slice(0, 200)]));
    for (const lane of this.all.values()) {
      const task = lane.kind === "run" ? this.tasks.get(lane.name) : undefined;
      if (task !== undefined && task !== lane.task) lane.call(task);
    }
  }

  /** @param {any[][]} lanes @param {any[][]} changes @param {number} now */
  take(lanes, changes, now) {
    for (const row of lanes) {
      if (this.all.has(row[0])) continue;
      const lane = new Lane(row);
      if (lane.kind === "run") lane.call(this.tasks.get(lane.name) ?? "");
      this.all.set(row[0], lane);
    }
    for (const [number, phase, at, detail] of changes) this.all.get(number)?.changes.push({ phase, at, detail });
    this.version += 1;
    if (this.version % 10 === 0 || this.all.size > LANES_MAX) this.tidy(now);
  }

  /** Lets go of what is too old, and of the oldest lanes where there are too many. @param {number} now */
  tidy(now) {
    for (const [number, lane] of this.all) {
      const first = lane.placeAt(now - KEPT_MS);
      if (first > 0) lane.changes.splice(0, first);
      const last = lane.last;
      if (!last || (last.phase === "gone" && last.at < now - KEPT_MS)) this.all.delete(number);
    }
    for (const [number, lane] of this.all) {
      if (this.all.size <= LANES_MAX) break;
      if (lane.kind === "run" && (!lane.last || QUIET.has(lane.last.phase))) this.all.delete(number);
    }
  }

  /**
   * What to show: models first, then runs, the newest family on top and children below their parents.
   * @param {number} from @param {number} to @param {string} words
   * @returns {Lane[]}
   */
  shown(from, to, words) {
    const wanted = words.toLowerCase();
    const models = [];
    const roots = [];
    /** @type {Map<string, Lane[]>} */
    const below = new Map();
    const names = new Set();
    const chosen = [];
    for (const lane of this.all.values()) {
      if ((wanted && !lane.words.includes(wanted)) || !lane.isBusy(from, to)) continue;
      if (lane.kind === "model") models.push(lane);
      else {
        chosen.push(lane);
        names.add(lane.name);
      }
    }
    for (const lane of chosen) {
      if (!lane.parent || !names.has(lane.parent) || lane.parent === lane.name) roots.push(lane);
      else below.set(lane.parent, [...(below.get(lane.parent) ?? []), lane]);
    }
    const found = [...models.sort((one, other) => (one.name < other.name ? -1 : 1))];
    const seen = new Set();
    const add = (lane, depth) => {
      if (seen.has(lane)) return;
      seen.add(lane);
      lane.depth = depth;
      found.push(lane);
      for (const child of below.get(lane.name) ?? []) add(child, depth + 1);
    };
    for (const lane of roots.reverse()) add(lane, 0);
    for (const lane of chosen) add(lane, 0);
    return found;
  }
}
