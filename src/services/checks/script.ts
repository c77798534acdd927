// A check by a program: exit code 0 means passing. It is started in the job's payload, with the service's name, address and
// port in its environment.

import { execPath } from "node:process";
import type { ServiceCheck, ServiceSpec } from "../../engine/service.ts";
import type { RunSideCommand } from "../../execution/process/side-command.ts";
import type { CheckResult } from "../instance.ts";

export interface ScriptParts {
  readonly run: RunSideCommand;
  /** The folder it starts in. */
  readonly folder: string;
  /** Removes the runtime's own secrets from its output. */
  readonly redact: (text: string) => string;
}

export interface ScriptAsked {
  readonly check: Extract<ServiceCheck, { kind: "script" }>;
  readonly spec: ServiceSpec;
  readonly host: string;
  /** Null without one. */
  readonly port: number | null;
}

export async function checkScript(
  { check, spec, host, port }: ScriptAsked,
  { run, folder, redact }: ScriptParts,
  signal: AbortSignal,
): Promise<CheckResult> {
  const end = await run(
    {
      command: check.command.map((word) => word.replaceAll("{node}", execPath)),
      folder,
      environment: {
        SVC_SERVICE_NAME: spec.name,
        SVC_SERVICE_ADDRESS: host,
        SVC_SERVICE_PORT: port === null ? "" : String(port),
        // The payload of a bundle is shared: the check must not write into it.
        PYTHONDONTWRITEBYTECODE: "1",
      },
      timeoutMs: check.timeoutMs,
    },
    signal,
  );
  switch (end.kind) {
    case "exited": {
      const output = redact(lastLine(end.stderr) || lastLine(end.stdout));
      const code = end.code === null ? "ended by a signal" : `exit code ${end.code}`;
      return { passed: end.code === 0, output: output === "" ? code : `${code}: ${output}` };
    }
    case "timed_out":
      return { passed: false, output: `no end within ${check.timeoutMs} ms` };
    case "aborted":
      return { passed: false, output: "stopped" };
    case "not_started":
      return { passed: false, output: `it could not be started (${end.reason})` };
    default:
      return end satisfies never;
  }
}

const lastLine = (text: string) => text.trimEnd().split("\n").at(-1)?.trim() ?? "";
