/**
 * Making elements. Text goes in as text, never as markup.
 */

/**
 * @param {string} tag
 * @param {{class?: string, scope?: string, data?: Record<string, string>, hidden?: boolean, span?: number}} options
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
  for (const child of children) made.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return made;
}

/** A word with a colour behind it. @param {string} word */
export function mark(word) {
  return element("span", { class: "mark", data: { mark: word } }, word);
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
