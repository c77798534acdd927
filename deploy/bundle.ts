// The program in a few files in place of a thousand: Node takes half a millisecond to find, read and link each, and half of
// a start is that. Libraries are in them too, with their licences beside.

import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { build } from "esbuild";
import { licencesOf } from "./licences.ts";

/** Beside the bundle: the licences of all libraries whose code is in it. */
export const LICENCES_FILE = "THIRD-PARTY-LICENSES";

/** By which libraries that are no ES modules load modules of Node. */
const REQUIRE = `import { createRequire as requireFrom } from "node:module";const require = requireFrom(import.meta.url);`;

/**
 * What Fastify loads for servers that speak HTTP/2 or TLS themselves, which the program's never do. Both bring all of TLS along: 3 MB.
 */
const UNUSED = /^node:http[s2]$/;

/** An error that nobody caught is printed with the line that it comes from. */
const LINE_CHARS_MAX = 200;

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
  const { metafile } = await build({
    entryPoints: [main],
    outdir: into,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node26",
    entryNames: "[name]",
    chunkNames: "[hash]",
    // Names stay, for the sake of stack traces. Comments take memory, twice as much where one has a letter beyond Latin-1.
    minifyWhitespace: true,
    lineLimit: LINE_CHARS_MAX,
    legalComments: "none",
    banner: { js: REQUIRE },
    logLevel: "warning",
    metafile: true,
    plugins: [
      {
        name: "troupe",
        setup({ onLoad, onResolve }) {
          onResolve({ filter: UNUSED }, ({ importer, path }) =>
            importer.includes("/node_modules/fastify/") ? { path, namespace: "unused" } : null,
          );
          onLoad({ filter: UNUSED, namespace: "unused" }, () => ({ contents: "" }));
          onLoad({ filter: /\.m?js$/ }, async ({ path }) => {
            if (path.includes("/node_modules/")) return null;
            const text = await readFile(path, "utf8");
            const address = `new URL(${JSON.stringify(relative(into, path))}, import.meta.url).href`;
            return { contents: text.replaceAll("import.meta.url", address), loader: "js" };
          });
        },
      },
    ],
  });
  writeFileSync(join(into, LICENCES_FILE), licencesOf(Object.keys(metafile.inputs)));
}
