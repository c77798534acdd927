// JSON Pointers (RFC 6901).

/** @param path names and indexes from the root to the value */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
