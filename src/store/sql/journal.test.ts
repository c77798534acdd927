import { databases, type OpenDatabase } from "../../../test/support/databases.ts";
import { type JournalUnderTest, journalContract } from "../../../test/support/journal-contract.ts";
import { sqlJobRecords } from "./jobs.ts";

for (const { name, create } of databases) {
  journalContract(name, async () => under(await create()));
}

function under(open: OpenDatabase): JournalUnderTest {
  const records = sqlJobRecords(open.database);
  return {
    journal: open.journal,
    reopen: async () => under(await open.reopen()),
    async events(jobId) {
      const lines: string[] = [];
      for (;;) {
        const page = await records.events(jobId, lines.length);
        if (page.lines.length === 0) return lines;
        lines.push(...page.lines);
      }
    },
    close: open.close,
  };
}
