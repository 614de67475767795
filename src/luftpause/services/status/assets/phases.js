/**
 * What the phases of a run look like and are called.
 */

/** How high a phase's bar is, as a share of the row, so that it is told without its colour too. */
export const HEIGHTS = { held: 0.5, loading: 0.5, prefill: 0.62, decode: 0.62, tool: 0.18, failed: 0.5, up: 0.18, leaving: 0.5 };
export const WORDS = {
  held: "held",
  loading: "held, its model is loading",
  prefill: "prefill",
  decode: "decode",
  tool: "out on a tool",
  idle: "idle",
  failed: "failed",
  up: "up",
  leaving: "draining or stopping",
  gone: "over",
};

/** The text, or as much of it as there is room for. @param {CanvasRenderingContext2D} pen @param {string} words @param {number} width */
export function fitted(pen, words, width) {
  if (pen.measureText(words).width <= width) return words;
  let length = Math.floor((words.length * width) / pen.measureText(words).width);
  while (length > 1 && pen.measureText(`${words.slice(0, length)}…`).width > width) length -= 1;
  return `${words.slice(0, length)}…`;
}
