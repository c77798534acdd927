// Downloads a model's file over HTTP, and goes on where an earlier attempt was cut.
//
// - Beside the file lies what it is the beginning of: an address, and the server's mark of the content. Only a beginning of
//   the same is continued; another content begins anew.
// - Redirects lead only to where the address itself might be: https, or this machine.
// - A token is sent to the address's own server alone.

import { createHash } from "node:crypto";
import { open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { type Content, type Done, hashInto } from "./copy-content.ts";

const REDIRECTS_MAX = 5;
/** So many bytes are written at once. */
const PIECE_BYTES = 1024 * 1024;
const READ_ONLY = 0o400;

export interface Download {
  readonly url: string;
  /** Sent as a bearer token. */
  readonly token: string | null;
  readonly to: string;
}

/** The server did not give the file. */
export class DownloadFailed extends Error {
  override readonly name = "DownloadFailed";
  /** Whether it is worth while to try again. */
  readonly isPassing: boolean;
  /** How long the server wants to be left alone; null when it does not say. */
  readonly waitMs: number | null;

  constructor(message: string, isPassing: boolean, waitMs: number | null = null) {
    super(message);
    this.isPassing = isPassing;
    this.waitMs = waitMs;
  }
}

export interface DownloadProgress {
  /** Told once, with the bytes of the whole file; null when the server does not say. @throws to have no byte written */
  readonly begins: (totalBytes: number | null, bytesThere: number) => void;
  readonly done: Done;
}

/** Whether a model may come from there: https, or http of this machine. */
export function isDownloadAddress(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.username !== "" || parsed.password !== "") return false;
  if (parsed.protocol === "https:") return true;
  return parsed.protocol === "http:" && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(parsed.hostname);
}

/**
 * Downloads the rest of a file.
 *
 * @throws DownloadFailed; the system's errors. What has come stays, and is gone on with by the next call.
 */
export async function download({ url, token, to }: Download, progress: DownloadProgress): Promise<Content> {
  const hash = createHash("sha256");
  const known = await beginningOf(to, url);
  let at = known.bytes;
  const range: Record<string, string> =
    at === 0 ? {} : { range: `bytes=${at}-`, ...(known.mark !== null && { "if-range": known.mark }) };
  const answer = await asked(url, token, range);
  if (at > 0 && answer.status === 416) {
    await answer.body?.cancel();
    await forgetDownload(to);
    throw new DownloadFailed("The server does not have the rest of what it had begun to send.", true);
  }
  if (!answer.ok || answer.body === null) throw await refused(answer);
  const isRest = answer.status === 206 && startOf(answer) === at;
  if (answer.status === 206 && !isRest)
    throw new DownloadFailed("The server has sent another part than it was asked for.", false);
  if (isRest) await hashInto(hash, to, () => {});
  else if (at > 0) {
    await forgetDownload(to);
    at = 0;
  }
  const length = lengthOf(answer);
  const totalBytes = length === null ? null : at + length;
  progress.begins(totalBytes, at);
  if (at === 0) await writeFile(markOf(to), JSON.stringify({ url, mark: mark(answer) }));
  await using file = await open(to, at === 0 ? "w" : "r+", 0o600);
  let pieces: Uint8Array[] = [];
  let waiting = 0;
  const write = async () => {
    const piece = Buffer.concat(pieces, waiting);
    [pieces, waiting] = [[], 0];
    hash.update(piece);
    for (let written = 0; written < piece.length; )
      written += (await file.write(piece, written, piece.length - written, at + written)).bytesWritten;
    at += piece.length;
    progress.done(at);
  };
  try {
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      pieces.push(chunk);
      waiting += chunk.length;
      if (waiting >= PIECE_BYTES) await write();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw error;
    await write();
    throw new DownloadFailed(`The connection was cut: ${reasonOf(error)}.`, true);
  }
  await write();
  await file.chmod(READ_ONLY);
  await file.sync();
  return { sha256: hash.digest("hex"), bytes: at };
}

/** Removes what has come of a download. */
export async function forgetDownload(to: string): Promise<void> {
  await rm(to, { force: true });
  await rm(markOf(to), { force: true });
}

const markOf = (to: string) => `${to}.from`;

/** What an earlier call has left of this very file. */
async function beginningOf(
  to: string,
  url: string,
): Promise<{ readonly bytes: number; readonly mark: string | null }> {
  const found = await stat(to).catch(() => null);
  const from = await readFile(markOf(to), "utf8")
    .then((text) => JSON.parse(text) as { readonly url: string; readonly mark: string | null })
    .catch(() => null);
  if (found === null || found.size === 0 || from?.url !== url) {
    await forgetDownload(to);
    return { bytes: 0, mark: null };
  }
  return { bytes: found.size, mark: from.mark };
}

/** A strong one: with a weak one two contents may be the same to the server. */
function mark({ headers }: Response): string | null {
  const etag = headers.get("etag");
  return etag !== null && !etag.startsWith("W/") ? etag : headers.get("last-modified");
}

async function asked(
  url: string,
  token: string | null,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const { origin } = new URL(url);
  for (let at = url, hops = 0; ; hops++) {
    const isOwn = new URL(at).origin === origin;
    const authorization = token !== null && isOwn ? { authorization: `Bearer ${token}` } : {};
    // Compressed bytes would be neither the file's nor countable.
    const all = { "accept-encoding": "identity", ...headers, ...authorization };
    const answer = await fetch(at, { headers: all, redirect: "manual" }).catch((error: unknown) => {
      throw new DownloadFailed(`${new URL(at).host} cannot be reached: ${reasonOf(error)}.`, true);
    });
    const location = answer.headers.get("location");
    if (answer.status < 300 || answer.status > 399 || location === null) return answer;
    await answer.body?.cancel();
    const next = URL.parse(location, at)?.href;
    if (hops === REDIRECTS_MAX) throw new DownloadFailed("It is redirected too often.", false);
    if (next === undefined || !isDownloadAddress(next))
      throw new DownloadFailed(
        "It is redirected to an address that is neither https nor of this machine.",
        false,
      );
    at = next;
  }
}

async function refused(answer: Response): Promise<DownloadFailed> {
  await answer.body?.cancel();
  const { status, url } = answer;
  const isPassing = status === 429 || status === 408 || status >= 500;
  const wait = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const hint =
    status === 401 || status === 403 ? '; if it needs a token, register the source with "token"' : "";
  return new DownloadFailed(
    `${new URL(url).host} answers with HTTP ${status}${hint}.`,
    isPassing,
    Number.isFinite(wait) ? Math.max(0, wait) * 1_000 : null,
  );
}

const startOf = ({ headers }: Response) =>
  Number(/^bytes (\d+)-/.exec(headers.get("content-range") ?? "")?.[1] ?? -1);

function lengthOf({ headers }: Response): number | null {
  const text = headers.get("content-length");
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

/** A server that is silent for five minutes is left alone by `fetch`. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as { readonly cause?: NodeJS.ErrnoException; readonly message: string };
  return cause?.code ?? cause?.message ?? message;
}
