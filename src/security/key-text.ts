// A secret key as text: what SVC_SECRET_KEY and the file secret.key hold.

export const KEY_BYTES = 32;

/** @returns the 32 bytes that the text spells in hex or in base64 (of either alphabet); null when it does not */
export function keyOfText(text: string): Buffer | null {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return Buffer.from(text, "base64");
  return null;
}
