// Elements made by name. Texts of others (titles, names, notes) only ever become text, never markup.

// Characters that control a terminal or reverse a text: shown as numbers, as in reports.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text as it may be shown. */
export const visible = (text) =>
  text.replaceAll(STEERING, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);

const shown = (children) =>
  children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(String(child))));

/** Makes an element. `on...` attributes are listeners; false and null leave one out. Children are nodes or texts. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...shown(children));
  return made;
}

/** Puts children in the place of what an element had. */
export function fill(element, ...children) {
  element.replaceChildren(...shown(children));
  return element;
}

/**
 * Puts nodes in the place of what an element had. Those that are there already stay where they are: what is pressed,
 * clicked, typed into or open meanwhile is not lost.
 */
export function arrange(element, nodes) {
  const wanted = new Set(nodes);
  for (const node of [...element.childNodes]) if (!wanted.has(node)) node.remove();
  nodes.forEach((node, at) => {
    if (element.childNodes[at] !== node) element.insertBefore(node, element.childNodes[at] ?? null);
  });
}

/** Keeps what was made of the same content under the same name. */
export class Kept {
  constructor() {
    this.known = new Map();
  }

  /** The node that was made of this content, or a new one by `make()`. */
  get(name, content, make) {
    const text = JSON.stringify(content);
    const before = this.known.get(name);
    if (before?.text === text) return before.node;
    const node = make();
    this.known.set(name, { text, node });
    return node;
  }

  /** Forgets all names but these. */
  only(names) {
    const wanted = new Set(names);
    for (const name of this.known.keys()) if (!wanted.has(name)) this.known.delete(name);
  }
}

/** Sets a text only where it differs, so that a reader of screens does not hear the same again. */
export function say(element, text) {
  const wanted = visible(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** As `say`; what stands between backticks is code. */
export function tell(element, text) {
  const parts = visible(text).split("`");
  if (element.textContent !== parts.join("")) fill(element, parts.map((part, at) => (at % 2 ? h("code", {}, part) : part)));
}

const TOKEN = "X-Nicbench-Token";

/** Sends a POST with the server's token, a new one where the server was started again; throws an Error in its words. */
export async function post(path) {
  const kept = document.querySelector("meta[name=nicbench-token]");
  const send = () =>
    fetch(path, { method: "POST", headers: { [TOKEN]: kept.content, "Content-Type": "application/json" }, body: "{}" });
  let answer = await send();
  if (answer.status === 403) {
    const found = await fetch("/api/token", { headers: { [TOKEN]: "" } });
    const { token } = found.ok ? await found.json() : {};
    if (token && token !== kept.content) {
      kept.content = token;
      answer = await send();
    }
  }
  if (!answer.ok) throw new Error(await wordsOf(answer));
}

/** The words of an answer that is an error. */
export async function wordsOf(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim() || `the server answered ${answer.status}`;
  }
}
