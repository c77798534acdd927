// The few things that this page does to the document.
//
// - Text is only ever set as text: nothing here takes HTML.

const SVG = "http://www.w3.org/2000/svg";

/** The element of this id; the page has it, or it is broken. */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element ${id}.`);
  return found;
}

/**
 * Makes an element.
 *
 * @param properties attributes by name, but `text`, its content as text, and functions, its listeners;
 *   what is null, undefined or false is left out
 * @param children elements, or text
 */
export function element(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** The same for drawings. */
export function drawn(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Replaces the content of an element; children that are null are left out. */
export function fill(target, ...children) {
  target.replaceChildren(...children.filter((child) => child !== null));
}

/** Sets a text, if it is another one: what does not change is not laid out again. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** The same for an attribute; null takes it away. */
export function setAttribute(target, name, value) {
  if (value === null) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, String(value));
}

/** What scrolls must be reached by the keyboard, and say what it is. */
export function scrollable(target, label) {
  setAttribute(target, "tabindex", 0);
  setAttribute(target, "aria-label", label);
  if (target.localName !== "ul") setAttribute(target, "role", "group");
  return target;
}

/** Calls `run` once before the next picture, however often it is asked for; a hidden page has few pictures. */
export function onceAFrame(run) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    const go = () => {
      if (!isAsked) return;
      isAsked = false;
      run();
    };
    requestAnimationFrame(go);
    // A page in the background gets no pictures, but its title and its memory must keep up.
    if (document.hidden) setTimeout(go, 500);
  };
}

/** Calls `run` at most every `everyMs`, the last time for certain. */
export function atMost(everyMs, run) {
  let timer = null;
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (timer !== null) return;
    const waitMs = Math.max(0, lastMs + everyMs - performance.now());
    timer = setTimeout(() => {
      timer = null;
      lastMs = performance.now();
      run();
    }, waitMs);
  };
}
