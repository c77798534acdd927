// The header Prefer (RFC 7240). Preferences other than `wait` are ignored, as the RFC demands.

/** Longer waits are cut to this: proxies and clients give up on requests that take longer. */
const WAIT_SECONDS_MAX = 60;

/**
 * How long the header asks to wait, in seconds; 0 when it does not.
 *
 * Of several `wait`s the first one counts. One whose value is no whole number is a preference that cannot be met, and
 * is ignored; more than 60 is 60.
 *
 * @example waitSeconds("respond-async, wait=10"); // 10
 */
export function waitSeconds(header: string | undefined): number {
  if (header === undefined) return 0;
  const preference = separated(header, ",").find((one) => nameOf(one) === "wait");
  if (preference === undefined) return 0;
  const [head = ""] = separated(preference, ";");
  const value = unquoted(head.slice(head.indexOf("=") + 1).trim());
  return head.includes("=") && /^\d+$/.test(value) ? Math.min(Number(value), WAIT_SECONDS_MAX) : 0;
}

/** Names have no case. */
function nameOf(preference: string): string {
  const end = preference.search(/[=;]/);
  return (end < 0 ? preference : preference.slice(0, end)).trim().toLowerCase();
}

/** The parts between separators that are not within a quoted string. */
function separated(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') isQuoted = !isQuoted;
    else if (isQuoted && char === "\\") at++;
    else if (!isQuoted && char === separator) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, text.slice(from)];
}

function unquoted(value: string): string {
  return /^"(.*)"$/.exec(value)?.[1]?.replace(/\\(.)/g, "$1") ?? value;
}
