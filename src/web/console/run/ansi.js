// @ts-check
// Colours and weights that a program writes into its lines for a terminal, as names of styles. Pure.

const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
/** Only these are shown; black and white would be the page's own. */
const shownColours = new Set(["red", "green", "yellow", "blue", "magenta", "cyan"]);
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const STYLES = /\u001b\[([\d;]*)m/;
/** Of a line with more, the rest has the last style. */
const PARTS_MAX = 200;

/** @param {string} text @returns {{ text: string, styles: string[] }[]} other terminal sequences stay in the text */
export function styledParts(text) {
  const pieces = text.split(STYLES, 2 * PARTS_MAX + 1);
  /** @type {Set<string>} */
  let styles = new Set();
  const parts = [];
  for (const [index, piece] of pieces.entries()) {
    if (index % 2 === 1) styles = styledBy(piece, styles);
    else if (piece !== "") parts.push({ text: piece, styles: [...styles] });
  }
  return parts;
}

/** @param {string} codes such as 1;31 @param {ReadonlySet<string>} before */
function styledBy(codes, before) {
  let styles = new Set(before);
  const numbers = codes.split(";").map(Number);
  for (let index = 0; index < numbers.length; index++) {
    const code = numbers[index] ?? 0;
    // Of 256 and of all colours only the eight are shown.
    if (code === 38 || code === 48) index += numbers[index + 1] === 5 ? 2 : 4;
    else if (code === 0) styles = new Set();
    else if (code === 1) styles.add("bold");
    else if (code === 2) styles.add("dim");
    else if (code === 3) styles.add("italic");
    else if (code === 4) styles.add("underline");
    else if (code === 22) styles = without(styles, ["bold", "dim"]);
    else if (code === 23) styles.delete("italic");
    else if (code === 24) styles.delete("underline");
    else if (code === 39) styles = without(styles, names);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      styles = without(styles, names);
      const colour = names[code % 10] ?? "";
      if (shownColours.has(colour)) styles.add(colour);
    }
  }
  return styles;
}

/** @param {ReadonlySet<string>} styles @param {readonly string[]} gone */
const without = (styles, gone) => new Set([...styles].filter((style) => !gone.includes(style)));
