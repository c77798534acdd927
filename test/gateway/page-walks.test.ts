// Walks through pages of lists that change meanwhile, and page tokens that somebody has tampered with.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { anyString, fc } from "../support/fast-check.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  startRun,
  uploadBundle,
  walk,
} from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import type { Program } from "../support/program.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere();
});
after(() => program.stop());

type Move =
  | { readonly kind: "page"; readonly size: number }
  | { readonly kind: "create" }
  | { readonly kind: "delete"; readonly item: number };

const moves = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("page" as const), size: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant("create" as const) }),
    fc.record({ kind: fc.constant("delete" as const), item: fc.nat(20) }),
  ),
  { maxLength: 14 },
);

interface List {
  readonly path: string;
  readonly idName: string;
  /** Ids rise with the age; else those that were made within a millisecond have no order. */
  readonly idsRise: boolean;
  create(): Promise<string>;
  delete(id: string): Promise<void>;
}

async function remove(path: string): Promise<void> {
  const answer = await ask(program, "DELETE", path, { headers: { "if-match": "*" } });
  assert.equal(answer.status, 204, answer.text);
}

function jobsOf(bundleId: string): List {
  return {
    path: "/jobs",
    idName: "job_id",
    idsRise: true,
    create: async () => String((await call(program, "POST", "/jobs", { bundle_id: bundleId })).job_id),
    delete: (id) => remove(`/jobs/${id}`),
  };
}

let uploads = 0;
const bundleList: List = {
  path: "/bundles",
  idName: "bundle_id",
  idsRise: false,
  create: () => uploadBundle(program, graph(`page-${++uploads}`, [router("in")])),
  delete: (id) => remove(`/bundles/${id}`),
};

/** Walks through a list while it changes. */
async function walkWhile(list: List, existing: number, taken: readonly Move[]): Promise<void> {
  const alive = new Set<string>();
  for (let i = 0; i < existing; i++) alive.add(await list.create());
  const throughout = new Set(alive);
  const ever = new Set(alive);
  const seen: string[] = [];
  const ages: string[] = [];
  let token: string | null = "";
  const page = async (size: number) => {
    if (token === null) return;
    const query = token === "" ? "" : `&page_token=${token}`;
    const { items, next_page_token } = await call(program, "GET", `${list.path}?page_size=${size}${query}`);
    for (const item of items as readonly JsonObject[]) {
      seen.push(String(item[list.idName]));
      ages.push(String(item.created_at));
    }
    token = next_page_token as string | null;
  };
  for (const move of taken) {
    if (move.kind === "page") await page(move.size);
    else if (move.kind === "create") {
      const id = await list.create();
      alive.add(id);
      ever.add(id);
    } else {
      const id = [...alive][move.item];
      if (id === undefined) continue;
      await list.delete(id);
      alive.delete(id);
      throughout.delete(id);
    }
  }
  while (token !== null) await page(3);
  for (const id of alive) await list.delete(id);
  assert.equal(new Set(seen).size, seen.length, "none is repeated");
  const shown = new Set(seen);
  for (const id of throughout) assert.ok(shown.has(id), "no item that was there throughout is lost");
  if (!list.idsRise) return assert.deepEqual(ages, ages.toSorted().toReversed(), "newest first");
  const own = seen.filter((id) => ever.has(id));
  assert.deepEqual(
    own,
    [...ever].toReversed().filter((id) => shown.has(id)),
    "newest first",
  );
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/. ";

/** Text for a query; half of a surrogate pair has no encoding of its own. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

test("random walks of creates, deletes and pages never lose or repeat a job", async () => {
  const list = jobsOf(await uploadBundle(program, graph("paged", [router("in")])));
  const property = fc.asyncProperty(fc.nat(8), moves, (existing, taken) => walkWhile(list, existing, taken));
  await fc.assert(property, { numRuns: sized(8, 40), endOnFailure: true });
});

test("random walks of creates, deletes and pages never lose or repeat a bundle", async () => {
  const property = fc.asyncProperty(fc.nat(4), moves, (existing, taken) =>
    walkWhile(bundleList, existing, taken),
  );
  await fc.assert(property, { numRuns: sized(5, 20), endOnFailure: true });
});

test("random tampering of page tokens never gives anything but 400", async () => {
  const jobId = await createJob(program, graph("tokens", [router("in")]));
  for (let i = 0; i < 3; i++) await ended(program, await startRun(program, jobId));
  const tokenOf = async (path: string) =>
    String((await call(program, "GET", `${path}page_size=1`)).next_page_token);
  const list = `/jobs/${jobId}/runs`;
  const token = await tokenOf(`${list}?`);
  const others = [await tokenOf("/runs?"), await tokenOf(`${list}?status=completed&`)];
  const tampered = fc.oneof(
    fc
      .record({ at: fc.nat(token.length - 1), by: fc.constantFrom(...ALPHABET) })
      .map(({ at, by }) => token.slice(0, at) + by + token.slice(at + 1)),
    fc.nat(token.length - 1).map((length) => token.slice(0, length)),
    fc.string({ minLength: 1, maxLength: 8 }).map((more) => token + more),
    fc.string({ maxLength: 8 }).map((more) => more + token.slice(1)),
    fc
      .record({ at: fc.nat(token.length), other: fc.constantFrom(...others) })
      .map(({ at, other }) => token.slice(0, at) + other.slice(at)),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("base64url")),
    anyString({ maxLength: 300 }),
  );
  await fc.assert(
    fc.asyncProperty(tampered, async (text) => {
      fc.pre(text !== token);
      const answer = await ask(program, "GET", `${list}?page_token=${encode(text)}`);
      assert.equal(answer.status, 400, answer.text);
      assertProblem(answer, 400, "invalid_page_token");
    }),
    { numRuns: sized(80, 400) },
  );
  assert.equal(
    (await ask(program, "GET", `${list}?page_token=${token}`)).status,
    200,
    "the token itself is good",
  );
});

const MIB = 1024 * 1024;

/** The pages of a whole walk that asks for as many as there may be. */
async function pagesOf(list: string): Promise<readonly (readonly JsonObject[])[]> {
  const pages: (readonly JsonObject[])[] = [];
  let token: string | null = null;
  do {
    const next: string = token === null ? "" : `&page_token=${token}`;
    const answer = await ask(program, "GET", `${list}page_size=200${next}`);
    assert.equal(answer.status, 200, answer.text.slice(0, 500));
    assert.ok(answer.text.length < 9 * MIB, `a page of ${answer.text.length} characters`);
    pages.push(answer.body.items as readonly JsonObject[]);
    token = answer.body.next_page_token as string | null;
  } while (token !== null);
  return pages;
}

test("large items make shorter pages: each is bounded, and the walk meets every item once, whole", async () => {
  const bundleId = await uploadBundle(program, graph("large", [router("in")]));
  const text = "x".repeat(3 * MIB);
  const jobIds: string[] = [];
  for (let n = 0; n < 5; n++) {
    const body = { bundle_id: bundleId, resolved_configuration: { n, text } };
    jobIds.unshift(String((await call(program, "POST", "/jobs", body)).job_id));
  }
  const jobs = (await pagesOf("/jobs?limit=5&")).map((page) => page.map(({ job_id }) => job_id));
  assert.deepEqual(jobs, [jobIds.slice(0, 2), jobIds.slice(2, 4), jobIds.slice(4)]);

  const jobId = String(jobIds[0]);
  const runIds: string[] = [];
  for (let n = 0; n < 5; n++) runIds.unshift(await startRun(program, jobId, { inputs: { n, text } }));
  for (let n = 0; n < 3; n++) runIds.unshift(await startRun(program, jobId));
  for (const runId of runIds) await ended(program, runId);
  for (const list of [
    `/jobs/${jobId}/runs?`,
    `/runs?job_id=${jobId}&`,
    `/jobs/${jobId}/runs?status=completed&`,
  ]) {
    const pages = await pagesOf(list);
    assert.deepEqual(
      pages.flatMap((page) => page.map(({ run_id }) => run_id)),
      runIds,
    );
    assert.ok(pages.length > 2, `${pages.length} pages`);
    for (const run of pages.flat().slice(3)) assert.equal((run.inputs as JsonObject).text, text);
  }
  // A page that is full by its count is as before.
  assert.deepEqual(
    (await walk(program, `/jobs/${jobId}/runs`, 1)).map(({ run_id }) => run_id),
    runIds,
  );
  const { recent_runs } = await call(program, "GET", `/jobs/${jobId}?view=full`);
  assert.deepEqual(
    (recent_runs as readonly JsonObject[]).map(({ run_id }) => run_id),
    runIds,
  );
});
