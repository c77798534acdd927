// The checks of `troupe doctor` beside those that a running server has too (src/execution/machine.ts): store and port.
// Each check returns findings, throws nothing and leaves nothing behind.

import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { TroupeRuntime } from "../../sdk/src/index.ts";
import { checkFiles } from "../app/bytes.ts";
import { stopwatch, systemClock } from "../app/clock.ts";
import type { Config } from "../app/config.ts";
import { runtimeSocket } from "../app/runtime-socket.ts";
import {
  checkHome,
  checkNode,
  checkProc,
  checkTools,
  type Finding,
  nearestExisting,
  tryToListen,
} from "../execution/machine.ts";
import { checkSandbox } from "../execution/sandbox/check.ts";
import { checkHomeState, databaseFile, openHome, pathsOpenToOthers } from "../store/home.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { contentNamedIn } from "../store/sqlite/database-copy.ts";
import { changedRowsText, damageText } from "../store/sqlite/errors.ts";
import { quickCheck } from "../store/sqlite/quick-check.ts";
import { medianCommitMs } from "../store/sqlite/self-check.ts";
import { defaultRuntimeAddress } from "./connection.ts";
import { cleanText } from "./text.ts";

const COMMIT_WARN_MS = 20;
/** Long, because on a busy machine an answer may be late. */
const CHECK_TIMEOUT_MS = 10_000;

/** @param config null when it is not valid; what depends on it is left out */
export async function checkMachine(config: Config | null): Promise<readonly Finding[]> {
  const findings = [checkNode()];
  if (config !== null) {
    const home = await checkHome(config.home, config.home);
    findings.push(...home);
    if (home.every(({ state }) => state !== "fail")) {
      findings.push(
        ...(config.databaseUrl === null
          ? [await checkStore(config.home), ...checkContent(config)]
          : [await checkServer(config, config.databaseUrl)]),
        ...checkPrivacy(config.home),
      );
    }
    findings.push(...checkCertificate(config));
    const files = await checkFiles(config);
    if (files !== null) findings.push(files);
    findings.push(describeRuntimeApi(config));
    if (config.runtimeApi === "tcp") findings.push(await checkPort(config));
  }
  return [
    ...findings,
    ...(await checkTools({ timeoutMs: CHECK_TIMEOUT_MS })),
    ...(config === null ? [] : [await checkSandbox(config.sandboxEngine)]),
    checkProc(),
  ];
}

/** Opens the store of the home, and times synced commits beside it, on the same disk. */
async function checkStore(home: string): Promise<Finding> {
  const file = databaseFile(home);
  try {
    checkHomeState(home);
    if (existsSync(file)) {
      if (!isInUse(home)) await openSqlite(file).close();
      const { damage, changedRows } = quickCheck(file);
      if (damage !== null) return { name: "store", state: "fail", text: damageText(file, damage) };
      if (changedRows.length > 0) {
        return { name: "store", state: "fail", text: `${changedRowsText(file)} ${changedRows.join(", ")}` };
      }
    }
    const medianMs = await medianCommitMs(nearestExisting(home));
    const text = `SQLite opens; a synced commit takes ${medianMs.toFixed(2)} ms`;
    if (medianMs < COMMIT_WARN_MS) return { name: "store", state: "ok", text };
    const fix = "The disk syncs slowly; a local SSD makes every job faster.";
    return { name: "store", state: "warn", text, fix };
  } catch (error) {
    // The store's own errors say how to fix them.
    return { name: "store", state: "fail", text: error instanceof Error ? error.message : String(error) };
  }
}

/** Leases and times of records are by the server's clock. */
const CLOCK_WARN_MS = 1_000;

async function checkServer({ databaseIsPooled: isPooled, fromHome }: Config, url: string): Promise<Finding> {
  const name = "store";
  const { examinePostgres } = await import("../store/postgres/examine.ts");
  try {
    const clocks = { nowMs: systemClock.nowMs, stopwatch };
    const { server, version, clockAheadMs, commitMs } = await examinePostgres(url, isPooled, clocks);
    const place = fromHome.includes("SVC_DATABASE_URL") ? " (cluster.json in SVC_HOME)" : "";
    const text = `PostgreSQL ${version} at ${server}${place}; a commit takes ${commitMs.toFixed(2)} ms; its clock differs by ${clockAheadMs} ms`;
    if (Math.abs(clockAheadMs) >= CLOCK_WARN_MS)
      return { name, state: "warn", text, fix: "Synchronize the clocks of both machines (NTP)." };
    if (commitMs < COMMIT_WARN_MS) return { name, state: "ok", text };
    return {
      name,
      state: "warn",
      text,
      fix: "Bring the server nearer, or give it a faster disk: every job waits for commits.",
    };
  } catch (error) {
    return { name, state: "fail", text: error instanceof Error ? error.message : String(error) };
  }
}

const EXPIRY_WARN_MS = 30 * 24 * 60 * 60 * 1_000;

/** How long other nodes will believe this one. */
function checkCertificate({ nodeTlsCert, nodeTlsCa }: Config): readonly Finding[] {
  const name = "node certificate";
  return [nodeTlsCert, nodeTlsCa].flatMap((file): Finding | readonly never[] => {
    if (file === null) return [];
    try {
      const { validTo, validToDate } = new X509Certificate(file.pem);
      const leftMs = validToDate.getTime() - systemClock.nowMs();
      const text = `${file.path} ${leftMs > 0 ? "is" : "was"} valid until ${validTo}`;
      if (leftMs > EXPIRY_WARN_MS) return { name, state: "ok", text };
      const fix = "Make another one (`troupe node certificates` does), and restart this node.";
      return { name, state: leftMs > 0 ? "warn" : "fail", text, fix };
    } catch (error) {
      const text = `${file.path} is no certificate (${(error as Error).message})`;
      return { name, state: "fail", text, fix: "Correct SVC_NODE_TLS_CERT and SVC_NODE_TLS_CA." };
    }
  });
}

/** The start takes these permissions away where it may. */
function checkPrivacy(home: string): readonly Finding[] {
  const open = pathsOpenToOthers(home, { fix: false });
  if (open.length === 0) return [];
  const text = `other users of this machine may read or enter ${open.slice(0, PATHS_SHOWN).join(", ")}`;
  const fix = `Run \`chmod -R go= ${home}\` as its owner, or start Troupe as its owner, which does the same.`;
  return [{ name: "privacy", state: "warn", text, fix }];
}

const PATHS_SHOWN = 3;

/** Whether the files that the database names exist; no finding without a readable database. */
function checkContent(config: Config): readonly Finding[] {
  const name = "content";
  try {
    if (!existsSync(databaseFile(config.home))) return [];
    const first = missingContent(config);
    // Checked twice, to leave out what a running program has removed meanwhile.
    const paths = first.size === 0 ? [] : [...first.intersection(missingContent(config))];
    if (paths.length === 0)
      return [{ name, state: "ok", text: "every file that the database names is there" }];
    const text = `${paths.length} of the files that the database names are missing: ${paths.slice(0, PATHS_SHOWN).join(", ")}${paths.length > PATHS_SHOWN ? ", …" : ""}`;
    const fix =
      "Put them back from a backup (`troupe restore` into an empty folder brings them), or upload their bundles again.";
    return [{ name, state: "fail", text, fix }];
  } catch {
    // The store's own check reports what is wrong with the database.
    return [];
  }
}

function missingContent({ home, blobUrl }: Config): ReadonlySet<string> {
  const missing = new Set<string>();
  for (const { kind, path } of contentNamedIn(databaseFile(home))) {
    if (kind === "blob" && blobUrl !== null) continue;
    if (!existsSync(join(home, path))) missing.add(path);
  }
  return missing;
}

/** Whether a runtime has this home; its store is then open, and not to be touched. */
function isInUse(home: string): boolean {
  if (!existsSync(home)) return false;
  try {
    openHome(home).release();
    return false;
  } catch {
    return true;
  }
}

/** Who may give the runtime API work. */
function describeRuntimeApi({ runtimeApi, runtimeApiTokens, home }: Config): Finding {
  const text = {
    off: "off: work comes through the gateway only",
    socket: `the socket ${runtimeSocket(home)}, for this user alone`,
    tcp:
      runtimeApiTokens.length > 0
        ? "a port that asks for its token"
        : "a port without a token: every user of this machine may run commands. SVC_RUNTIME_API=socket closes it",
  }[runtimeApi];
  return { name: "runtime API", state: "ok", text };
}

async function checkPort(config: Config): Promise<Finding> {
  const port = config.runtimeApiPort;
  const name = "port";
  if (port === 0) return { name, state: "ok", text: "the runtime API takes any free port" };
  const refused = await tryToListen(config.runtimeApiHost, port);
  if (refused === null) return { name, state: "ok", text: `${port} is free` };
  if (refused !== "EADDRINUSE") {
    const fix = "Choose another address with SVC_RUNTIME_API_HOST and SVC_RUNTIME_API_PORT.";
    return {
      name,
      state: "fail",
      text: `${config.runtimeApiHost}:${port} cannot be used (${refused})`,
      fix,
    };
  }
  const version = await runningVersion(config);
  if (version !== null) return { name, state: "ok", text: `${port} is held by a running Troupe ${version}` };
  const fix = "End the program that listens there, or set SVC_RUNTIME_API_PORT.";
  return { name, state: "fail", text: `${port} is held by another program`, fix };
}

async function runningVersion(config: Config): Promise<string | null> {
  const address = defaultRuntimeAddress(config);
  if (address === null) return null;
  const { baseUrl, fetch } = address;
  const runtime = new TroupeRuntime({ baseUrl, fetch, retries: 0 });
  const health = await runtime.health({ signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) }).catch(() => null);
  return typeof health?.version === "string" ? cleanText(health.version) : null;
}
