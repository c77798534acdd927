// The blueprint csv-report, launched through the gateway with a folder of the user's.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  errorsOf,
  type Finished,
  fingerprintOf,
  finished,
  gatedCatalog,
  launch,
  launched,
  startCatalog,
  startCatalogHere,
  type TestFolder,
  userFolder,
} from "../support/catalog-blueprints.ts";
import { assertProblem, ended, happens, pathsOf } from "../support/gateway-api.ts";
import { sized } from "../support/long.ts";
import type { Program } from "../support/program.ts";

const ID = "csv-report";
/** Ends a test that would hang; none asserts on time. */
const limit = { timeout: 200_000 };
const ROWS = sized(10_000, 30_000);
const READER_BYTES_MAX = 128 * 1024 * 1024;

let program: Program;
before(async () => {
  program = await startCatalogHere();
});
after(() => program.stop());

const folderIs = (folder: TestFolder, more: JsonObject = {}): JsonObject => ({
  tables: { folder: folder.path },
  ...more,
});

interface Table {
  readonly file: string;
  readonly rows: number;
  readonly encoding?: string;
  readonly delimiter?: string;
  readonly columns: readonly { readonly name: string; readonly kind: string; readonly sum?: number }[];
  readonly findings: readonly {
    readonly code: string;
    readonly column: string | null;
    readonly lines: number[];
  }[];
}

function tablesOf({ outputs }: Finished): ReadonlyMap<string, Table> {
  const { tables } = JSON.parse(outputs.get("findings.json") ?? "{}") as { tables: Table[] };
  return new Map(tables.map((table) => [table.file, table]));
}

const codesOf = (table: Table | undefined) => table?.findings.map(({ code }) => code).sort();

describe("the blueprint csv-report", { concurrency: 2 }, () => {
  it("finds what is wrong with the tables of a folder, and leaves it untouched", limit, async () => {
    await using folder = await userFolder({
      "good.csv": "day,place,amount\n2025-01-01,North,1.5\n2025-01-02,South,2\n2025-01-03,North,3\n",
      "bad/ragged.csv": "a,b,,b\n1,x,,\n2,y\nthree,y,,z,more\n4,w,,\n5,v,,\n6,u,,\n4,w,,\n",
      "german.csv": Buffer.from("Tag;Käufe\r\n31.01.2025;1.000,5\r\n01.02.2025;2,5\r\n", "latin1"),
      "wide.csv": `${Array.from({ length: 1_000 }, (_, i) => `c${i}`)}\n${Array(1_000).fill(1)}\n`,
      "empty.csv": "",
      "a zip.csv": Buffer.from("PK\x03\x04zip"),
      "notes.xlsx": "left out",
    });
    const untouched = await fingerprintOf(folder.path);
    const end = await finished(program, await launched(program, ID, folderIs(folder)));
    const tables = tablesOf(end);
    assert.deepEqual(
      [...tables.keys()],
      ["a zip.csv", "bad/ragged.csv", "empty.csv", "german.csv", "good.csv", "wide.csv"],
    );

    const good = tables.get("good.csv");
    assert.deepEqual(good?.findings, []);
    assert.deepEqual(
      good.columns.map(({ kind }) => kind),
      ["date", "text", "number"],
    );
    assert.equal(good.columns[2]?.sum, 6.5);
    assert.deepEqual(codesOf(tables.get("bad/ragged.csv")), [
      "empty_column",
      "long_rows",
      "mixed_kinds",
      "mostly_empty",
      "repeated_names",
      "repeated_rows",
      "short_rows",
      "unnamed_columns",
    ]);
    const mixed = tables.get("bad/ragged.csv")?.findings.find(({ code }) => code === "mixed_kinds");
    assert.deepEqual([mixed?.column, mixed?.lines], ["a", [4]]);
    const german = tables.get("german.csv");
    assert.deepEqual(
      [german?.encoding, german?.delimiter, german?.columns[1]],
      ["cp1252", "semicolon", { ...german?.columns[1], name: "Käufe", sum: 1003 }],
    );
    assert.equal(tables.get("wide.csv")?.columns.length, 1_000);
    assert.deepEqual(codesOf(tables.get("a zip.csv")), ["unreadable"]);
    assert.deepEqual(codesOf(tables.get("empty.csv")), ["no_rows"]);
    assert.equal(end.result.tables, 6);
    assert.equal(await fingerprintOf(folder.path), untouched);
  });

  it("shows what is in cells as text, and draws charts that can be read without eyes", limit, async () => {
    const hostile = "</title><script>alert(1)</script><img src=x onerror=alert(1)>";
    const rows = Array.from({ length: 40 }, (_, i) => `2025-01-${(i % 28) + 1},"${hostile}",${i},=cmd${i}`);
    await using folder = await userFolder({
      [`${"<b>"}.csv`]: `day,${hostile},number,formula\n${rows.join("\n")}\n`,
    });
    const { outputs } = await finished(program, await launched(program, ID, folderIs(folder)));
    const html = outputs.get("report.html") ?? "";
    assert.doesNotMatch(html, /<script|<img|<b>\.csv/);
    assert.match(html, /40 values would become a formula/);
    assert.ok(!/(?:src|href)="(?!#)/.test(html), "the page loads nothing from elsewhere");
    const charts = html.match(/<svg[^>]*>/g) ?? [];
    assert.ok(charts.length >= 2);
    for (const chart of charts) assert.match(chart, /role="img" aria-labelledby="c\d+t c\d+d"/);
    assert.equal(html.match(/<desc id=/g)?.length, charts.length);
    assert.equal(html.match(/<details>/g)?.length, charts.length, "a table beside each chart");
  });

  it("reports on the tables that it ships with when no folder is given", limit, async () => {
    const end = await finished(program, await launched(program, ID));
    assert.deepEqual(
      [...tablesOf(end).keys()],
      ["customers-with-mistakes.csv", "orders.csv", "temperaturen.csv"],
    );
  });

  it("refuses what it cannot work with, and says what would do", limit, async () => {
    await using sheets = await userFolder({ "year.xlsx": "PK" });
    const errors = new Map(
      await errorsOf(program, ID, folderIs(sheets, { report: { header: "maybe", delimiter: "::" } })),
    );
    assert.match(errors.get("/config/tables/folder") ?? "", /\.csv/);
    assert.match(errors.get("/config/report/header") ?? "", /first_row/);
    assert.match(errors.get("/config/report/delimiter") ?? "", /comma, semicolon, tab/);

    await using hollow = await userFolder({ "a.csv": "" });
    const refused = await launch(program, ID, folderIs(hollow));
    assertProblem(refused, 422, "validation_failed");
    assert.deepEqual(pathsOf(refused), ["/config_overrides/tables/folder"]);
    assert.match(refused.text, /all empty/);
  });

  it(
    "reads a large table in little memory, and gives the same report after kill -9 in the middle",
    limit,
    async () => {
      await using home = await userFolder();
      await using folder = await userFolder({ "small.csv": "a,b\n1,2\n" });
      const line = (i: number) =>
        `${i},2025-0${(i % 9) + 1}-11,place ${i % 50},${(i * 7919) % 1000},words about number ${i}\n`;
      await folder.write(
        "large.csv",
        `id,day,place,amount,text\n${Array.from({ length: ROWS }, (_, i) => line(i)).join("")}`,
      );
      await using catalog = await gatedCatalog(ID, "tables/report.py");
      const env = { SVC_BLUEPRINT_CATALOG: catalog.folder };

      await using first = await startCatalog({ home: home.path, env });
      const runId = await launched(first, ID, folderIs(folder));
      // One table is done, most likely the small one; whether the other is or not, the report is not.
      await happens(first, runId, "metric");
      await first.kill();

      await catalog.open();
      await using second = await startCatalogHere({ home: home.path, env });
      const after = await finished(second, runId);
      assert.equal(tablesOf(after).get("large.csv")?.rows, ROWS);
      const { of } = await ended(second, runId);
      assert.equal(of("job_recovered").length, 1);
      const peaks = of("sandbox_job_completed").map(({ payload }) => Number(payload.max_rss_bytes ?? 0));
      assert.ok(Math.max(...peaks) > 0 && Math.max(...peaks) < READER_BYTES_MAX, `${peaks}`);
      const undisturbed = await finished(second, await launched(second, ID, folderIs(folder)));
      assert.deepEqual(after.outputs, undisturbed.outputs);
    },
  );
});
