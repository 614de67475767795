/**
 * Making elements and words. Text goes in as text, never as markup.
 */

/** What has no look of its own, or turns the order of what follows: names and arguments could seem to be others. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** A text in which everything is to be seen. @param {string | number} text */
export function plain(text) {
  return String(text).replace(UNSEEN, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * @param {string} tag
 * @param {{class?: string, scope?: string, data?: Record<string, string>, hidden?: boolean, span?: number,
 *   attributes?: Record<string, string>}} options
 * @param {...(Node | string | number)} children
 * @returns {HTMLElement}
 */
export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  if (options.class) made.className = options.class;
  if (options.scope) made.setAttribute("scope", options.scope);
  if (options.hidden) made.setAttribute("aria-hidden", "true");
  if (options.span) made.setAttribute("colspan", String(options.span));
  for (const [key, value] of Object.entries(options.data ?? {})) made.dataset[key] = value;
  for (const [key, value] of Object.entries(options.attributes ?? {})) made.setAttribute(key, plain(value));
  for (const child of children) made.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  return made;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/** A word with a colour behind it. @param {string} word @param {string} [look] */
export function mark(word, look = word) {
  return element("span", { class: "mark", data: { mark: look } }, word);
}

/** A quiet line below. @param {string} text */
export function detail(text) {
  return element("span", { class: "detail" }, text);
}

/** @param {string | number | Node} content */
export function numberCell(content) {
  return element("td", { class: "number" }, content);
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.0005) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Without tenths, for what ticks. @param {number} seconds */
export function coarse(seconds) {
  if (seconds > 0 && seconds < 1) return "< 1 s";
  return seconds < 60 ? `${Math.round(seconds)} s` : duration(seconds);
}

/** @param {number} bytes */
export function memory(bytes) {
  const mib = bytes / 1048576;
  return mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

/** @param {number} count */
export function brief(count) {
  if (count < 10000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(count < 1e5 ? 1 : 0)} k` : `${(count / 1e6).toFixed(1)} M`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function several(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** The beginning of a long id. @param {string} id */
export function shortId(id) {
  return id.length > 16 ? `${id.slice(0, 14)}…` : id;
}
