// One run of a check: it always ends in time, with a result.

import { tmpdir } from "node:os";
import type { Clock } from "../engine/ports.ts";
import type { ServiceCheck } from "../engine/service.ts";
import type { RunSideCommand } from "../execution/process/side-command.ts";
import type { PayloadOf } from "../execution/runner/paths.ts";
import { checkHttp } from "./checks/http.ts";
import { checkScript, type ScriptAsked } from "./checks/script.ts";
import { authority, checkTcp, type Target } from "./checks/tcp.ts";
import type { CheckResult, ServiceInstance } from "./instance.ts";
import { checkedAt } from "./service-view.ts";

const OUTPUT_CHARS_MAX = 200;

export interface CheckParts {
  readonly clock: Clock;
  readonly run: RunSideCommand;
  readonly payloadOf: PayloadOf;
  /** Removes the runtime's own secrets from a text. */
  readonly redact: (text: string) => string;
}

/** Whose check it is. */
export type Checked = Pick<ServiceInstance, "spec" | "job">;

/** Makes a check. Never throws. @param signal ends it early */
export async function makeCheck(
  parts: CheckParts,
  service: Checked,
  check: ServiceCheck,
  signal: AbortSignal,
): Promise<CheckResult> {
  const host = checkedAt(check.address ?? service.spec.address);
  const port = check.port ?? service.spec.port;
  const { passed, output } =
    check.kind === "script"
      ? await script(parts, service, { check, spec: service.spec, host, port }, signal)
      : port === null
        ? { passed: false, output: noPort(service.spec.portLabel) }
        : await connection(parts, check, { host, port }, signal);
  return { passed, output: short(output) };
}

/** A program has its own end in time. */
async function script(
  parts: CheckParts,
  { job }: Checked,
  asked: ScriptAsked,
  signal: AbortSignal,
): Promise<CheckResult> {
  try {
    const folder = (await parts.payloadOf(job)) ?? tmpdir();
    return await checkScript(asked, { ...parts, folder }, signal);
  } catch (error) {
    return { passed: false, output: messageOf(error) };
  }
}

type ConnectionCheck = Exclude<ServiceCheck, { kind: "script" }>;

async function connection(
  { clock }: CheckParts,
  check: ConnectionCheck,
  target: Target,
  signal: AbortSignal,
): Promise<CheckResult> {
  // A signal of its own, for this check alone: what is left listening to it goes away with it, whereas the service's
  // signal lives as long as the service.
  const end = new AbortController();
  let isLate = false;
  const stop = () => end.abort();
  const cancel = clock.after(check.timeoutMs, () => {
    isLate = true;
    stop();
  });
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([probe(check, target, end.signal), aborted(end.signal)]);
  } catch (error) {
    const reason = isLate ? `no answer within ${check.timeoutMs} ms` : messageOf(error);
    return { passed: false, output: `${authority(target)}: ${reason}` };
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
  }
}

/** Rejects with the signal, so that a check ends in time whatever becomes of its connection. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stopped = () => reject(new Error("stopped"));
    if (signal.aborted) stopped();
    else signal.addEventListener("abort", stopped, { once: true });
  });
}

async function probe(check: ConnectionCheck, target: Target, signal: AbortSignal): Promise<CheckResult> {
  switch (check.kind) {
    case "http":
      return checkHttp(check, target, signal);
    case "tcp":
      return checkTcp(target, signal);
    case "grpc": {
      // Loaded here because HTTP/2 brings TLS along: 3 MB for the few services that are checked so.
      const { checkGrpc } = await import("./checks/grpc.ts");
      return checkGrpc(check.service, target, signal);
    }
    default:
      return check satisfies never;
  }
}

const noPort = (label: string | null) =>
  label === null ? "it has no port" : `"${label}" has no number: give it one in resources.ports`;

/** The system's message repeats the address; the code is enough. */
function messageOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

/** One line of bounded length. */
function short(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\s]+/gu, " ").trim();
  return line.length <= OUTPUT_CHARS_MAX ? line : `${line.slice(0, OUTPUT_CHARS_MAX - 1).toWellFormed()}…`;
}
