/**
 * Reads the scheduler's events with a token, which EventSource cannot send, and begins anew when they end.
 */

const KEY = "luftpause.token";
const PAUSES_MS = [500, 1000, 2000, 5000, 10000];
const SILENCE_MS = 40000;

/** What is said to whoever looks when there is no answer. */
export class NoAnswer extends Error {}

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

/** @param {string} value */
export function keepToken(value) {
  sessionStorage.setItem(KEY, value);
}

/** @returns {Record<string, string>} */
function credentials() {
  return token() ? { authorization: `Bearer ${token()}` } : {};
}

/**
 * @param {string} path @param {unknown} body
 * @returns {Promise<any>} the answer; throws an Error with what the scheduler says.
 */
export async function send(path, body) {
  const headers = { ...credentials(), "content-type": "application/json" };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error?.message ?? `the scheduler answered ${answer.status}`);
  return said;
}

/**
 * @param {string} path
 * @param {{begin: () => void, take: (update: any) => void, lost: (why: string) => void, refused: () => void}} to
 */
export class Stream {
  constructor(path, to) {
    this.path = path;
    this.to = to;
    this.tries = 0;
    this.timer = 0;
    this.abort = null;
  }

  start() {
    window.clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = new AbortController();
    this.read(this.abort).catch((error) => this.again(error));
  }

  stop() {
    window.clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
  }

  /** @param {unknown} error */
  again(error) {
    if (error instanceof DOMException && error.name === "AbortError" && !this.silent) return;
    this.silent = false;
    this.to.lost(error instanceof NoAnswer ? error.message : "no answer");
    this.timer = window.setTimeout(() => this.start(), PAUSES_MS[Math.min(this.tries, PAUSES_MS.length - 1)]);
    this.tries += 1;
  }

  /** @param {AbortController} abort */
  async read(abort) {
    const answer = await fetch(this.path, { headers: credentials(), cache: "no-store", signal: abort.signal });
    if (answer.status === 401) return this.to.refused();
    if (!answer.ok || !answer.body) {
      const said = await answer.json().catch(() => ({}));
      throw new NoAnswer(said.error?.message ?? `the scheduler answered ${answer.status}`);
    }
    this.to.begin();
    this.tries = 0;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const watch = window.setTimeout(() => {
        this.silent = true;
        abort.abort();
      }, SILENCE_MS);
      const { done, value } = await reader.read().finally(() => window.clearTimeout(watch));
      if (done) throw new NoAnswer("the scheduler ended the connection");
      const events = (rest + value).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) if (event.startsWith("data: ")) this.to.take(JSON.parse(event.slice(6)));
    }
  }
}
