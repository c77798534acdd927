// Dotted paths into JSON, such as "documents.folder".
//
// A part is a key of an object, or the index of an item of a list. A dot that belongs to a key is written "\.", a
// backslash "\\"; "__proto__" is no part of a path.

const PARTS_MAX = 64;

/** @returns the parts of a dotted path; null when it is none */
export function partsOf(path: string): readonly string[] | null {
  const parts = [""];
  for (let i = 0; i < path.length; i++) {
    const char = path[i]!;
    if (char === ".") parts.push("");
    else if (char === "\\" && (path[i + 1] === "." || path[i + 1] === "\\"))
      parts.push(parts.pop() + path[++i]!);
    else parts.push(parts.pop() + char);
  }
  const isWrong = parts.length > PARTS_MAX || parts.some((part) => part === "" || part === "__proto__");
  return isWrong ? null : parts;
}
