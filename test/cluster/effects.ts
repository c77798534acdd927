// What commands did, written down by themselves outside of everything that a node holds.
//
// An attempt holds a lock while anything of it runs, its grandchildren included: the lock is theirs by an open file, which they inherit.
// So two attempts of one task at once are seen, and in the end whether anything is left of any command.

import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SeenEvent } from "../support/gateway-api.ts";

/** Writes a line at an attempt's start and at its end, and one when another attempt of its task runs still. */
const WRAPPER = `
task="$SVC_RUN_ID.$SVC_AGENT_ID"
line() { printf '%s\\n' "$1 $SVC_RUN_ID $SVC_AGENT_ID $SVC_ATTEMPT" >>"$EFFECTS/lines"; }
exec 9>>"$EFFECTS/locks/$task"
flock -n 9 || line overlap
line start
"$@"
code=$?
line end
exit "$code"
`;

interface Line {
  readonly what: string;
  readonly runId: string;
  readonly agentId: string;
  readonly attempt: number;
}

export class Effects {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(folder: string): Promise<Effects> {
    await mkdir(join(folder, "locks"), { recursive: true });
    await Promise.all([writeFile(join(folder, "wrapper.sh"), WRAPPER), writeFile(join(folder, "lines"), "")]);
    return new Effects(folder);
  }

  /** The configuration of an executor that runs this command and writes its effects down. */
  command(...command: readonly string[]) {
    return {
      command: ["sh", join(this.#folder, "wrapper.sh"), ...command],
      environment: { EFFECTS: this.#folder },
    };
  }

  /** Tasks of which something runs. */
  async running(): Promise<readonly string[]> {
    const names = await readdir(join(this.#folder, "locks"));
    return names.filter((name) => !isFree(join(this.#folder, "locks", name)));
  }

  /**
   * @param histories the events of all runs, by their ids
   * @returns a sentence for each thing that was done and is not in the history, or the other way round
   */
  async wrongWith(histories: ReadonlyMap<string, readonly SeenEvent[]>): Promise<readonly string[]> {
    const wrong: string[] = [];
    const text = await readFile(join(this.#folder, "lines"), "utf8");
    const seen = new Map<string, number>();
    for (const { what, runId, agentId, attempt } of text.trim().split("\n").map(toLine)) {
      const name = `attempt ${attempt} of ${agentId} of ${runId}`;
      const times = (seen.get(`${what} of ${name}`) ?? 0) + 1;
      seen.set(`${what} of ${name}`, times);
      if (what === "overlap") wrong.push(`${name} began while an earlier one ran`);
      if (times > 1) wrong.push(`the ${what} of ${name} was written ${times} times`);
    }
    for (const [runId, events] of histories) {
      for (const { type, agent_id: agentId, payload } of events) {
        const name = `attempt ${payload.attempt} of ${agentId} of ${runId}`;
        if (type === "sandbox_job_started") seen.delete(`start of ${name}`);
        if (type === "sandbox_job_completed" && !seen.has(`end of ${name}`))
          wrong.push(`${name} has succeeded, and did not come to its end`);
      }
    }
    for (const key of seen.keys()) if (key.startsWith("start of ")) wrong.push(`the ${key} is in no history`);
    return wrong;
  }
}

function toLine(line: string): Line {
  const [what = "", runId = "", agentId = "", attempt = ""] = line.split(" ");
  return { what, runId, agentId, attempt: Number(attempt) };
}

function isFree(file: string): boolean {
  try {
    execFileSync("flock", ["-n", file, "true"]);
    return true;
  } catch {
    return false;
  }
}
