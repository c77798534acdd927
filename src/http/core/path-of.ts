// The path of a request's URL, as the router matches it.

/** @param url as the request line has it: it may name the host, and have a query or a fragment */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/]*/i, "");
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}
