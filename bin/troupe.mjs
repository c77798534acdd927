#!/usr/bin/env node
// The launcher: plain JavaScript for any Node 18 or newer, which finds a Node 26 (the user's own, or the one
// that npm installed with this package) and hands the program to it: src/main.ts in a checkout, a bundle of it in an
// installed package. `node bin/troupe.mjs --node FILE …` runs another file the same way; the package's scripts use that.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module, { createRequire } from "node:module";
import { constants, homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NODE_MAJOR = 26;
const root = fileURLToPath(new URL("..", import.meta.url));

function installedNode() {
  const os = process.platform === "win32" ? "win" : process.platform;
  const name = `node-${os === "darwin" && process.arch === "arm64" ? "bin-" : ""}${os}-${process.arch}`;
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
    const file = join(folder, "bin", os === "win" ? "node.exe" : "node");
    return existsSync(file) ? file : null;
  } catch {
    return null;
  }
}

const isNewEnough = Number(process.versions.node.split(".")[0]) >= NODE_MAJOR;
const node = isNewEnough ? process.execPath : installedNode();
if (node === null) {
  console.error(
    `troupe: Node ${NODE_MAJOR} or newer is needed, and this is ${process.version}. ` +
      `Install again without --omit=optional (it brings a Node ${NODE_MAJOR}), or install Node ${NODE_MAJOR} yourself.`,
  );
  process.exit(1);
}

const given = process.argv.slice(2);
const source = join(root, "src", "main.ts");
const isCheckout = existsSync(source);
const main = isCheckout ? source : join(root, "dist", "program", "main.js");
// Compiled code is kept between starts: it saves a third of the start time and 10 MB of memory. An installed package may
// belong to another user, so its cache is this user's own.
const userCache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
const cache = isCheckout
  ? join(root, "node_modules", ".cache", "troupe")
  : join(userCache, "troupe", "compiled");
const env = { NODE_COMPILE_CACHE: cache, ...process.env };

// node:ffi (src/execution/process/process-marks.ts) is experimental, and would warn every user.
const UNSHOWN = "ExperimentalWarning";

if (isNewEnough && given[0] !== "--node") {
  // Starting Node once more would take a tenth of the start.
  const shown = process.listeners("warning");
  process.removeAllListeners("warning").on("warning", (warning) => {
    if (warning.name !== UNSHOWN) for (const show of shown) show(warning);
  });
  process.env.NODE_COMPILE_CACHE = env.NODE_COMPILE_CACHE;
  module.enableCompileCache(env.NODE_COMPILE_CACHE);
  await import(pathToFileURL(main));
} else {
  const words = given[0] === "--node" ? given.slice(1) : [main, ...given];
  const args = [`--disable-warning=${UNSHOWN}`, ...words];
  if (typeof process.execve === "function") process.execve(node, [node, ...args], env);

  // The channel carries nothing: src/main.ts ends when it breaks, which is when this process was killed.
  const stdio = given[0] === "--node" ? "inherit" : ["inherit", "inherit", "inherit", "ipc"];
  const child = spawn(node, args, { stdio, env });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
}
