// The path of a request's URL, as the router matches it.

/** @param url as the request line has it: it may name the host, and have a query or a fragment */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/]*/i, "");
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** The path for the log. Who knows a webhook's path knows half of what it takes to send it something. */
export const loggedPath = (url: string): string => pathOf(url).replace(/^(\/+hooks\/).+/is, "$1********");
