// Ids: 26 lower-case characters in Crockford's base 32, the time in ms first, so that they sort by age.

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS = 10;
const RANDOM_CHARS = 16;

/**
 * Makes a source of ids that rise strictly, also within a millisecond and when the clock steps back.
 *
 * @param nowMs wall time in ms since 1970
 * @param fraction a random number from 0 up to, not including, 1
 */
export function idSource(nowMs: () => number, fraction: () => number): () => string {
  let lastMs = -1;
  let tail: number[] = [];
  let head = "";
  return () => {
    const ms = nowMs();
    if (ms > lastMs) {
      lastMs = ms;
      head = encodeTime(ms);
      tail = Array.from({ length: RANDOM_CHARS }, () => Math.floor(fraction() * 32));
      tail[0] = tail[0]! >> 1; // room to count up from
    } else increment(tail);
    let text = head;
    for (const digit of tail) text += ALPHABET[digit];
    return text;
  };
}

function encodeTime(ms: number): string {
  let text = "";
  let rest = ms;
  for (let i = 0; i < TIME_CHARS; i++) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function increment(digits: number[]): void {
  for (let i = digits.length - 1; i >= 0; i--) {
    if (digits[i] !== 31) {
      digits[i]!++;
      return;
    }
    digits[i] = 0;
  }
}

/** What every id of this time or a later one sorts behind, and every older one before. */
export const idsFrom = (ms: number) => encodeTime(Math.max(0, ms));

/**
 * The id of something that happens at a known time: always the same for the same digest.
 *
 * @param digest at least 16 bytes of chance
 */
export function timeId(ms: number, digest: Uint8Array): string {
  let text = encodeTime(ms);
  for (const byte of digest.subarray(0, RANDOM_CHARS)) text += ALPHABET[byte % 32];
  return text;
}
