// What there is on the server when the fuzzer begins, so that its requests get past the first 404.

import type { JsonObject } from "../../src/engine/json.ts";
import type { Random } from "../simulation/random.ts";
import { zipOf } from "../support/bundle-files.ts";
import { call, completed, createJob, startRun } from "../support/gateway-api.ts";
import { answer, executor, graph, router, sensor } from "../support/graphs.ts";
import type { Program } from "../support/program.ts";
import type { Operation } from "./surface.ts";
import { strangeHeaders } from "./values.ts";

export interface Fixtures {
  readonly host: string;
  /** A small bundle. */
  readonly zip: Buffer;
  /** A path parameter's value that exists, or nearly. */
  id(operation: Operation, name: string, random: Random): string;
  /** A query value that only the server can make; null for others. */
  query(operation: Operation, name: string, random: Random): string | null;
  header(operation: Operation, name: string, random: Random): string;
  /** A body field's value that only the server can make, as JSON; null for others. */
  field(name: string, random: Random): string | null;
}

/** Makes a job with runs that have ended in every way, and one that goes on. Needs no more than a shell. */
export async function makeFixtures(program: Program): Promise<Fixtures> {
  const finished = graph("fuzzed", [router("in"), executor("out", writesFile)], [["in", "out"]]);
  const jobId = await createJob(program, finished);
  const { run } = await completed(program, jobId, { inputs: { n: 1 } });
  await completed(program, jobId);
  const endless = graph("endless", [sensor("s")]);
  const runIds = [String(run.run_id), await startRun(program, await createJob(program, endless))];
  const doomed = await createJob(program, graph("doomed", [router("in")]));
  const { items } = await call(program, "GET", `/runs/${runIds[0]}/artifacts?evidence=false`);
  const artifactIds = (items as readonly JsonObject[]).map(({ artifact_id }) => String(artifact_id));
  const job = await call(program, "GET", `/jobs/${jobId}`);
  const bundleId = String((job.source as JsonObject).bundle_id);
  const { next_page_token: token } = await call(program, "GET", "/runs?page_size=1");
  const zip = Buffer.from(
    await zipOf({ "manifest.json": graph("zipped", [router("in")]), "payloads/a": "a" }),
  );

  const ids: Readonly<Record<string, readonly string[]>> = {
    job_id: [jobId],
    run_id: runIds,
    bundle_id: [bundleId],
    artifact_id: artifactIds,
  };
  const known = (name: string, random: Random) => random.pick(ids[name] ?? ["some"]);
  return {
    host: new URL(program.url).host,
    zip,
    id(operation, name, random) {
      if (random.chance(0.1)) return "nobody";
      // What is deleted must not be what all others ask for.
      if (operation.method === "DELETE" && name === "job_id") return doomed;
      return known(name, random);
    },
    query(_operation, name, random) {
      if (name === "page_token") return String(token);
      return name === "run_id" || name === "job_id" ? known(name, random) : null;
    },
    header(_operation, name, random) {
      if (name === "If-Match") return random.pick(['"1"', "*", '"2"']);
      if (name === "Idempotency-Key") return `key-${random.below(50)}`;
      if (name === "Last-Event-ID") return String(random.below(20));
      return random.pick(strangeHeaders.slice(0, 30));
    },
    field: (name, random) => (name === "bundle_id" ? JSON.stringify(known(name, random)) : null),
  };
}

const writesFile = `printf 'a,b\\n' > "$SVC_OUTPUT_DIR/final_artifact.csv"; echo log; ${answer({ complete_step: { ok: true } })}`;
