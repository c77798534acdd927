// The list of runs, newest first. Every filter has an index that ends in the run's id; one of several statuses is the newest of
// each, merged. A text is no index's: it is looked for in a bounded number of runs, and the page says where the search ended.

import { type Kysely, sql } from "kysely";
import { idsFrom } from "../../engine/ids.ts";
import type { FoundRuns, RunPage } from "../../launch/records.ts";
import type { Database } from "./database.ts";
import { atMost, BEHIND_ALL_IDS, type Db, kindOf, listed, listQuery, pageQuery, query } from "./query.ts";
import { runs, toRun } from "./runs.ts";
import type { Schema } from "./schema.generated.ts";

/** Runs in which one page looks for a text: 10 ms when none has it, 25 when all have. */
const SEARCHED_MAX = 2_000;
const RUN_PREFIX = "run_";
const WHOLE_ID = /^(run|job)_[0-9a-z]{26}$/;

type Ids = ReturnType<typeof idsBehind>;

const idsBehind = (db: Kysely<Schema>, before: string, from: string, limit: number) =>
  db
    .selectFrom("runs as r")
    .innerJoin("job_definitions as d", "d.job_id", "r.job_id")
    .select("r.run_id")
    .where("d.deleted", "=", sql.lit(0))
    .where("r.run_id", "<", before)
    .where("r.run_id", ">=", from)
    .orderBy("r.run_id", "desc")
    .limit(atMost(limit));

const ids = listQuery(
  idsBehind,
  {
    jobId: (found: Ids, jobId) => found.where("r.job_id", "=", jobId),
    blueprintId: (found: Ids, blueprintId) => found.where("r.blueprint_id", "=", blueprintId),
    rerunOf: (found: Ids, rerunOf) => found.where("r.rerun_of", "=", rerunOf),
    status: (found: Ids, status) => found.where("r.status", "=", status),
    trigger: (found: Ids, kind) => found.where("r.trigger_kind", "=", kind),
    // The condition of the index: most runs are of this kind.
    isNotOfApi: (found: Ids) => found.where("r.trigger_kind", "<>", sql.lit("api")),
  },
  (row) => row.run_id,
);

const withText = query(
  (db, idsJson: string, text: string) => {
    const searched = sql`r.run_id || ' ' || r.job_id || ' ' || d.name || ' ' || coalesce(r.blueprint_id, '')`;
    const place = sql.raw(kindOf(db) === "sqlite" ? "instr" : "strpos");
    return db
      .selectFrom("runs as r")
      .innerJoin("job_definitions as d", "d.job_id", "r.job_id")
      .select("r.run_id")
      .where("r.run_id", "in", listed<string>(db, idsJson, "text"))
      .where(sql<boolean>`${place}(lower(${searched}), lower(${text})) > 0`);
  },
  (row) => row.run_id,
);

const byIds = pageQuery(
  (db: Db, idsJson: string) =>
    runs(db)
      .where("r.run_id", "in", listed<string>(db, idsJson, "text"))
      .orderBy("r.run_id", "desc"),
  toRun,
);

export async function listRuns(database: Database, given: RunPage): Promise<FoundRuns> {
  const page = withWholeId(given);
  const { limit, text = null } = page;
  const wanted = text === null ? limit : SEARCHED_MAX;
  const candidates = await newest(database, page, wanted);
  let found = candidates;
  if (text !== null) {
    const matching = new Set(await withText.all(database, JSON.stringify(candidates), text));
    found = candidates.filter((id) => matching.has(id)).slice(0, limit);
  }
  const { rows, isCut } = await byIds(database, JSON.stringify(found));
  if (isCut) return { rows, isCut };
  const isSearchOver = text === null || found.length === limit || candidates.length < wanted;
  // Some of those found may have been removed meanwhile.
  const searchedTo = isSearchOver && rows.length < found.length ? found.at(-1) : candidates.at(-1);
  if (searchedTo === undefined || (isSearchOver && rows.length === found.length)) return { rows, isCut };
  return { rows, isCut: true, searchedTo };
}

interface SearchedPage extends RunPage {
  readonly runId?: string;
}

/** A whole id is found by its index, however old it is. */
function withWholeId(page: RunPage): SearchedPage {
  const id = page.text?.toLowerCase() ?? "";
  switch (WHOLE_ID.exec(id)?.[1]) {
    case "run":
      return { ...page, text: null, runId: id };
    case "job":
      // A list of one job's runs has no other job's.
      return page.jobId === null || page.jobId === id ? { ...page, text: null, jobId: id } : page;
    default:
      return page;
  }
}

/** The ids of the newest runs that all filters but the text leave. */
async function newest(database: Database, page: SearchedPage, limit: number): Promise<readonly string[]> {
  const { jobId, blueprintId = null, rerunOf = null, trigger = null, after, runId } = page;
  const { sinceMs = null, untilMs = null } = page;
  const until = untilMs === null ? BEHIND_ALL_IDS : RUN_PREFIX + idsFrom(untilMs);
  // Behind the id, and before every other one that is.
  const untilId = runId !== undefined && runId < until ? `${runId}0` : until;
  const before = after !== null && after < untilId ? after : untilId;
  const since = sinceMs === null ? "" : RUN_PREFIX + idsFrom(sinceMs);
  const from = runId !== undefined && runId > since ? runId : since;
  const isNotOfApi = trigger !== null && trigger !== "api";
  const ofStatus = async (status: string | null) => {
    const filters = { jobId, blueprintId, rerunOf, status, trigger, isNotOfApi };
    return (await ids(database, filters, before, from, limit)).rows;
  };
  const statuses = page.status ?? [null];
  const parts = await Promise.all([...new Set(statuses)].map(ofStatus));
  return parts.length === 1
    ? parts[0]!
    : parts
        .flat()
        .sort((a, b) => (a < b ? 1 : -1))
        .slice(0, limit);
}
