// The program in a few files in place of a thousand: Node takes half a millisecond to find, read and link each, and half of
// a start is that. Libraries stay where npm has put them, but for the one that alone has 280 files.

import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { build } from "esbuild";

/** Its licence is to be kept beside the bundle. */
export const BUNDLED_LIBRARY = "kysely";

/**
 * Bundles the program.
 *
 * What it finds beside its own files (migrations, pages, the files of threads), it finds there still.
 *
 * @param main the file that it begins with, JavaScript
 * @param into a folder, which is made
 */
export async function bundle(main: string, into: string): Promise<void> {
  await build({
    entryPoints: [main],
    outdir: into,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node26",
    entryNames: "[name]",
    chunkNames: "[hash]",
    logLevel: "warning",
    plugins: [
      {
        name: "troupe",
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === "entry-point" || path === BUNDLED_LIBRARY ? null : { path, external: true },
          );
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
}
