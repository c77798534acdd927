// @ts-check
// Colours of the page's own scheme, for canvases.

/** Custom properties hold both schemes; only a property that is a colour is the one of now. @param {HTMLElement} element */
export function colourReader(element) {
  const known = new Map();
  return (/** @type {string} */ name) => {
    if (!known.has(name)) {
      element.style.setProperty("color", `var(${name})`);
      known.set(name, getComputedStyle(element).color);
    }
    return known.get(name);
  };
}
