import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JournalUnderTest, journalContract } from "../../../test/support/journal-contract.ts";
import { MemoryJournal } from "../../../test/support/memory-journal.ts";
import { SqlJobRecords } from "../job-records.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

journalContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "troupe-journal-"));
  const open = async (): Promise<JournalUnderTest> => {
    const database = openSqlite(join(folder, "troupe.db"));
    const records = new SqlJobRecords(database);
    return {
      journal: new SqliteJournal(database),
      async reopen() {
        await database.close();
        return open();
      },
      async events(jobId) {
        const lines: string[] = [];
        for (;;) {
          const page = await records.events(jobId, lines.length);
          if (page.lines.length === 0) return lines;
          lines.push(...page.lines);
        }
      },
      async close() {
        await database.close().catch(() => {});
        await rm(folder, { recursive: true, force: true });
      },
    };
  };
  return open();
});

journalContract("the simulation's memory", async () => {
  const memory = new MemoryJournal();
  const under: JournalUnderTest = {
    journal: memory,
    reopen: async () => under,
    events: async (jobId) => memory.jobs.get(jobId)?.events ?? [],
    close: async () => {},
  };
  return under;
});
