/**
 * What the scheduler told, put together from its updates.
 */

export class Table {
  constructor() {
    /** @type {Map<string, any>} */
    this.rows = new Map();
    /** @type {string[]} */
    this.order = [];
  }

  /** @returns {any[]} */
  list() {
    return this.order.map((key) => this.rows.get(key));
  }

  /** @param {{rows?: Record<string, any>, order?: string[]}} update @returns {Set<string>} the keys that changed */
  apply(update) {
    const changed = new Set(Object.keys(update.rows ?? {}));
    for (const key of changed) this.rows.set(key, update.rows[key]);
    if (update.order) {
      this.order = update.order;
      const there = new Set(update.order);
      for (const key of this.rows.keys()) if (!there.has(key)) this.rows.delete(key);
    }
    return changed;
  }
}

const NAMES = ["replicas", "held", "runs", "callers", "tools", "families", "peers", "models", "devices", "trees"];

export class Store {
  constructor() {
    this.forget();
  }

  forget() {
    /** @type {Record<string, Table>} */
    this.tables = Object.fromEntries(NAMES.map((name) => [name, new Table()]));
    this.about = null;
    this.runtime = null;
  }

  /** @param {any} update @returns {Record<string, Set<string>>} what changed, by table */
  apply(update) {
    if (update.about) this.about = update.about;
    if (update.runtime) this.runtime = update.runtime;
    const changed = {};
    for (const [name, told] of Object.entries(update.tables ?? {})) {
      if (name in this.tables) changed[name] = this.tables[name].apply(told);
    }
    return changed;
  }
}
