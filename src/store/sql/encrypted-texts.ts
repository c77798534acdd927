// Encrypted values within the texts of a database.

/** Every text that holds one contains this. */
export const PART_OF_ENCRYPTED = '"$sealed';
/** Also within JSON that a text holds as a string, where the quotes have backslashes before them. */
const ENCRYPTED = /\{(\\*)"\$sealed\1":\1"([\w-]+)\1"\}/g;

/** @param reencrypt from the text behind `$sealed` to the one in its place, which may be the same */
export function reencryptIn(text: string, reencrypt: (encrypted: string) => string): string {
  return text.replaceAll(ENCRYPTED, (_, slashes: string, encrypted: string) => {
    return `{${slashes}"$sealed${slashes}":${slashes}"${reencrypt(encrypted)}${slashes}"}`;
  });
}
