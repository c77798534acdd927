// A real Chromium, driven through its own protocol: enough to open a page, read its text, and know what it asked for.
//
// - The browser ends with `close`, and its profile is removed; it also ends with the test process.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

export interface Page {
  /** The text that a reader sees. */
  text(): Promise<string>;
  /** Every URL that the page has asked for, in order. */
  requested(): readonly string[];
  /** What the browser complains about: violations of the content policy, uncaught errors. */
  complaints(): readonly string[];
}

export interface Browser {
  /** @param password typed when the server asks for one */
  open(url: string, password?: string): Promise<Page>;
  close(): Promise<void>;
}

/** The path of a Chromium on this machine, or null. */
export function findBrowser(): string | null {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const places = ["chromium", "chromium-browser", "google-chrome"].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  return places.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--remote-debugging-port=0",
];

export async function startBrowser(): Promise<Browser> {
  const path = findBrowser();
  if (path === null) throw new Error("there is no Chromium on the PATH");
  const profile = await mkdtemp(join(tmpdir(), "troupe-browser-"));
  const child = spawn(path, [...flags, `--user-data-dir=${profile}`, "about:blank"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const wire = await Wire.connect(await debuggerUrl(child));
  return {
    open: (url, password) => openPage(wire, url, password),
    async close() {
      const exited = once(child, "exit");
      await wire.close();
      await exited;
      process.off("exit", kill);
      await rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

async function debuggerUrl(child: ChildProcess): Promise<string> {
  let printed = "";
  // Not destroyed when the URL is there: the browser goes on writing, and somebody has to read it.
  for await (const text of child.stderr?.iterator({ destroyOnReturn: false }) ?? []) {
    printed += String(text);
    const url = /ws:\/\/\S+(?=\n)/.exec(printed)?.[0];
    if (url === undefined) continue;
    child.stderr?.resume();
    return url;
  }
  throw new Error(`the browser did not start:\n${printed}`);
}

async function openPage(wire: Wire, url: string, password?: string): Promise<Page> {
  const requested: string[] = [];
  const complaints: string[] = [];
  const { targetId } = await wire.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await wire.send("Target.attachToTarget", { targetId, flatten: true });
  const session = String(sessionId);
  wire.on(session, ({ method, params }) => {
    switch (method) {
      case "Network.requestWillBeSent":
        requested.push((params.request as { url: string }).url);
        break;
      case "Log.entryAdded":
        complaints.push((params.entry as { text: string }).text);
        break;
      case "Runtime.exceptionThrown":
        complaints.push(JSON.stringify(params.exceptionDetails));
        break;
      case "Fetch.requestPaused":
        void wire.send("Fetch.continueRequest", { requestId: params.requestId }, session);
        break;
      case "Fetch.authRequired": {
        const authChallengeResponse = { response: "ProvideCredentials", username: "anyone", password };
        void wire.send(
          "Fetch.continueWithAuth",
          { requestId: params.requestId, authChallengeResponse },
          session,
        );
        break;
      }
      default:
    }
  });
  for (const domain of ["Network", "Log", "Runtime", "Page"])
    await wire.send(`${domain}.enable`, {}, session);
  if (password !== undefined) await wire.send("Fetch.enable", { handleAuthRequests: true }, session);
  await wire.send("Page.navigate", { url }, session);
  return {
    async text() {
      const expression = "document.body?.innerText ?? ''";
      const { result } = await wire.send("Runtime.evaluate", { expression, returnByValue: true }, session);
      return String((result as { value?: unknown } | undefined)?.value ?? "");
    },
    requested: () => requested,
    complaints: () => complaints,
  };
}

type Fields = Readonly<Record<string, unknown>>;

interface Notice {
  readonly method: string;
  readonly params: Fields;
}

interface Message extends Partial<Notice> {
  readonly id?: number;
  readonly sessionId?: string;
  readonly result?: Fields;
  readonly error?: { readonly message: string };
}

/** Calls and notices of the browser's protocol over one socket. */
class Wire {
  readonly #socket: WebSocket;
  readonly #calls = new Map<number, PromiseWithResolvers<Fields>>();
  readonly #listeners = new Map<string, (notice: Notice) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(String(data)) as Message));
  }

  static async connect(url: string): Promise<Wire> {
    const socket = new WebSocket(url);
    await once(socket, "open");
    return new Wire(socket);
  }

  on(sessionId: string, listener: (notice: Notice) => void): void {
    this.#listeners.set(sessionId, listener);
  }

  send(method: string, params: Fields, sessionId?: string): Promise<Fields> {
    const call = Promise.withResolvers<Fields>();
    const id = ++this.#lastId;
    this.#calls.set(id, call);
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }));
    return call.promise;
  }

  async close(): Promise<void> {
    await this.send("Browser.close", {});
    this.#socket.close();
  }

  #receive({ id, method, params, sessionId, result, error }: Message): void {
    if (id !== undefined) {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(result ?? {});
      else call?.reject(new Error(error.message));
    } else if (method !== undefined && sessionId !== undefined) {
      this.#listeners.get(sessionId)?.({ method, params: params ?? {} });
    }
  }
}
