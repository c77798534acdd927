// The program in a few files in place of a thousand: Node takes half a millisecond to find, read and link each, and half of
// a start is that. Libraries are in them too, with their licences beside.

import { writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type PluginContext, rolldown } from "rolldown";
import { licencesOf } from "./licences.ts";

/** Beside the bundle: the licences of all libraries whose code is in it. */
export const LICENCES_FILE = "THIRD-PARTY-LICENSES";

/**
 * What Fastify loads for servers that speak HTTP/2 or TLS themselves, which the program's never do. Both bring all of TLS along: 3 MB.
 */
const UNUSED = /^node:http[s2]$/;
const EMPTY = "\0empty";

/** What `troupe up` loads whatever its settings, beside the command itself. */
const SERVER = ["cli/serve.js", "app/app.js", "http/gateway/server.js"];
/** What the commands that call a gateway have in common. */
const CLIENT = ["cli/session.js", "cli/connection.js"];
/** The only other command that needs most of the server. */
const NEEDS_SERVER = "cli/rotate-secrets.js";

/**
 * Bundles the program, and writes the licences of what is in it.
 *
 * What it finds beside its own files (migrations, pages, the files of threads), it finds there still.
 *
 * @param main the file that it begins with, JavaScript
 * @param into a folder, which is made
 * @throws Error when the licence of a library is not known
 */
export async function bundle(main: string, into: string): Promise<void> {
  let chunkOf: ((id: string) => string | null) | null = null;
  const bundled = await rolldown({
    input: main,
    platform: "node",
    preserveEntrySignatures: false,
    logLevel: "warn",
    checks: { ineffectiveDynamicImport: false },
    plugins: [
      {
        name: "troupe",
        resolveId: (path, importer) =>
          UNUSED.test(path) && importer?.includes("/node_modules/fastify/") ? EMPTY : null,
        load: (id) => (id === EMPTY ? "" : null),
        transform(code, id) {
          if (id.includes("/node_modules/") || !code.includes("import.meta.url")) return null;
          const address = `new URL(${JSON.stringify(relative(into, id))}, import.meta.url).href`;
          return code.replaceAll("import.meta.url", address);
        },
        // A letter beyond ASCII makes a chunk take twice the memory.
        generateBundle(_options, files) {
          for (const file of Object.values(files))
            if (file.type === "chunk") file.code = file.code.replace(/[\u0080-\uffff]/g, escaped);
        },
      },
    ],
  });
  const { output } = await bundled.write({
    dir: into,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[hash].js",
    // Names and lines stay, for the sake of stack traces: an error that nobody caught is printed with its line.
    comments: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: "what is loaded together",
          name: (id, context) => {
            chunkOf ??= chunksOf(main, (of) => context.getModuleInfo(of));
            return chunkOf(id);
          },
        },
      ],
    },
  });
  const files = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  writeFileSync(join(into, LICENCES_FILE), licencesOf(files));
}

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Without it, a module that several commands share is in a chunk with those only that just the same commands share, and a
 * start loads a hundred chunks.
 *
 * @returns names the chunk of a module, or gives null where the bundler is to choose
 */
function chunksOf(main: string, infoOf: PluginContext["getModuleInfo"]): (id: string) => string | null {
  const at = (name: string) => join(dirname(main), name);
  const loadedWith = (ids: readonly string[]) => {
    const loaded = new Set<string>();
    const add = (id: string) => {
      if (loaded.has(id)) return;
      loaded.add(id);
      infoOf(id)?.importedIds.forEach(add);
    };
    ids.forEach(add);
    return loaded;
  };
  const shell = loadedWith([main]);
  const commands = [...shell].flatMap((id) => infoOf(id)?.dynamicallyImportedIds ?? []);
  const own = new Set([...SERVER, NEEDS_SERVER].map(at));
  const others = loadedWith(commands.filter((id) => !own.has(id)));
  const server = loadedWith(SERVER.map(at));
  const client = loadedWith(CLIENT.map(at));
  return (id) => {
    // It waits for what it starts, which could not load anything from a chunk that has not come to its end.
    if (id === main) return null;
    if (shell.has(id)) return "shell";
    if (!server.has(id)) return null;
    if (client.has(id)) return "common";
    return others.has(id) ? null : "server";
  };
}
