// The journal's contract as a suite: every implementation passes it (src/engine/journal.ts, J1 to J5).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DeadLetterRecord, Journal } from "../../src/engine/journal.ts";
import { newTally } from "../../src/engine/tally.ts";
import { agent, artifact, changes, humanRequest, message, next, progress, task } from "./journal-records.ts";

/** A journal under test: `reopen` gives it anew, with what is on disk only. */
export interface JournalUnderTest {
  readonly journal: Journal;
  reopen(): Promise<JournalUnderTest>;
  /** Everything the journal keeps of a job's history, in order. */
  events(jobId: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

const written = { lost: [], unwritable: [] };

export function journalContract(name: string, open: () => Promise<JournalUnderTest>): void {
  const test = (sentence: string, body: (under: JournalUnderTest) => Promise<void>) =>
    it(sentence, async () => {
      const under = await open();
      try {
        await body(under);
      } finally {
        await under.close();
      }
    });

  describe(`${name} as a journal`, () => {
    test("a job that was committed is loaded as it was, also after reopening", async (under) => {
      const first = changes({
        agents: [agent(0, { stateJson: '{"count":2}', lastError: "…\u{1f600}", unroutedJson: "[1]" })],
        messages: [message(1, 0), message(2, 0), message(3, 1)],
        items: [{ agentIndex: 1, firstSeq: 1, bodiesJson: ['{"a":1}', '"line\\nbreak"'] }],
        tasks: [task(1)],
      });
      assert.deepEqual(await under.journal.commit([first]), written);
      const again = await under.reopen();
      const image = await again.journal.load("g-1");
      assert.ok(image !== null);
      assert.equal(image.revision, 1);
      assert.equal(image.epoch, 1);
      assert.deepEqual(image.insert, first.insert);
      assert.deepEqual(image.progress, first.progress);
      assert.deepEqual(image.agents, first.agents);
      assert.deepEqual(image.messages, first.messages);
      assert.deepEqual(image.items, first.items);
      assert.deepEqual(image.tasks, first.tasks);
    });

    test("a job has the priority that it was given last", async ({ journal }) => {
      await journal.commit([changes(), changes({ jobId: "g-2", priority: "low" })]);
      await journal.commit([next(1, { priority: "normal" })]);
      await journal.commit([next(2)]);
      const terms = async (jobId: string) => (await journal.load(jobId))?.insert;
      assert.deepEqual([(await terms("g-1"))?.priority, (await terms("g-2"))?.priority], ["normal", "low"]);
      assert.equal((await terms("g-1"))?.weight, 7);
    });

    test("a job that never was is null", async ({ journal }) => {
      assert.equal(await journal.load("nobody"), null);
    });

    test("jobs that are loaded together are each as it was", async ({ journal }) => {
      const all = ["a-1", "b-1", "c-1"].map((jobId, n) =>
        changes({
          jobId,
          agents: [agent(0, { processedMessages: n }), agent(1, { lastError: jobId })],
          messages: [message(2 * n + 1, 0), message(2 * n + 2, 1)],
          tasks: [task(n + 1)],
          humanRequests: [humanRequest(n + 2), humanRequest(n + 1)],
        }),
      );
      await journal.commit(all);
      const ids = ["c-1", "nobody", "a-1", "b-1"];
      const [c, nobody, ...others] = await Promise.all(ids.map((id) => journal.load(id)));
      assert.equal(nobody, null);
      for (const [n, image] of [...others, c].entries()) {
        const { agents, messages, tasks, humanRequests } = all[n]!;
        assert.deepEqual([image?.agents, image?.messages, image?.tasks], [agents, messages, tasks]);
        assert.deepEqual(image?.humanRequests, humanRequests.toReversed());
      }
    });

    test("consumed messages go, new ones stay, of one agent's mailbox only", async ({ journal }) => {
      await journal.commit([changes({ messages: [message(1, 0), message(2, 0), message(3, 1)] })]);
      const second = next(1, { consumed: [{ agentIndex: 0, throughSeq: 1 }], messages: [message(4, 0)] });
      await journal.commit([second]);
      const image = await journal.load("g-1");
      assert.deepEqual(
        image?.messages.map((one) => one.seq),
        [2, 4, 3],
      );
    });

    test("items are cleared before new ones are kept", async ({ journal }) => {
      await journal.commit([changes({ items: [{ agentIndex: 1, firstSeq: 1, bodiesJson: ["1", "2"] }] })]);
      await journal.commit([next(1, { items: [{ agentIndex: 1, firstSeq: 3, bodiesJson: ["3"] }] })]);
      assert.equal((await journal.load("g-1"))?.items.length, 2);
      const third = next(2, {
        itemsCleared: [1],
        items: [{ agentIndex: 1, firstSeq: 4, bodiesJson: ["4"] }],
      });
      await journal.commit([third]);
      assert.deepEqual((await journal.load("g-1"))?.items, third.items);
    });

    test("agents and tasks are replaced, removed tasks are gone", async ({ journal }) => {
      await journal.commit([changes({ agents: [agent(0)], tasks: [task(1), task(2)] })]);
      const changed = {
        ...task(2),
        attempt: 2,
        failures: 1,
        state: { kind: "backoff", dueAtMs: 9 } as const,
      };
      const busy = agent(0, {
        status: "running",
        processedMessages: 7,
        lease: { leaseId: "l", pool: "p", slots: 1 },
      });
      await journal.commit([next(1, { agents: [busy], tasks: [changed], tasksRemoved: [1] })]);
      const image = await journal.load("g-1");
      assert.deepEqual(image?.tasks, [changed]);
      assert.deepEqual(image?.agents, [busy]);
    });

    test("requests to people are kept in the order in which they were asked, with their answers", async ({
      journal,
    }) => {
      await journal.commit([changes({ humanRequests: [humanRequest(2), humanRequest(1)] })]);
      const response = {
        decision: "yes",
        comment: null,
        dataJson: '{"n":1}',
        principal: "anonymous",
        respondedAtMs: 9,
      };
      const answered = { ...humanRequest(1), taskSeq: null, status: "answered", response } as const;
      await journal.commit([next(1, { humanRequests: [answered] })]);
      assert.deepEqual((await journal.load("g-1"))?.humanRequests, [answered, humanRequest(2)]);
    });

    test("a request takes the place of an older one of the same name", async ({ journal }) => {
      await journal.commit([changes({ humanRequests: [humanRequest(1), humanRequest(2)] })]);
      const afresh = { ...humanRequest(3), requestId: "ask-1" };
      await journal.commit([next(1, { humanRequests: [afresh] })]);
      assert.deepEqual((await journal.load("g-1"))?.humanRequests, [humanRequest(2), afresh]);
    });

    test("the history is appended in order, however large a batch is", async (under) => {
      const long = Array.from({ length: 3_000 }, (_, i) => `{"n":${i + 1},"pad":"${"x".repeat(200)}"}`);
      await under.journal.commit([changes({ eventLines: long })]);
      await under.journal.commit([next(1, { firstEventSeq: 3_001, eventLines: ['{"n":3001}'] })]);
      const again = await under.reopen();
      assert.deepEqual(await again.events("g-1"), [...long, '{"n":3001}']);
    });

    test("J1: a batch of several jobs is written whole", async ({ journal }) => {
      await journal.commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1" }), changes({ jobId: "c-1" })]);
      for (const id of ["a-1", "b-1", "c-1"]) assert.equal((await journal.load(id))?.revision, 1);
    });

    test("J2: a stale epoch, a strange owner and a stale revision change nothing, and the others are written", async (under) => {
      const { journal } = under;
      await journal.commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1" })]);
      const stale = [
        next(1, { jobId: "a-1", epoch: 0, eventLines: ["{}"] }),
        next(1, { jobId: "a-1", owner: "other", eventLines: ["{}"] }),
        next(0, { jobId: "a-1", epoch: 7, eventLines: ["{}"] }),
        next(9, { jobId: "a-1", eventLines: ["{}"] }),
      ];
      for (const one of stale) {
        const before = await journal.load("a-1");
        const good = next((await journal.load("b-1"))!.revision, { jobId: "b-1" });
        assert.deepEqual(await journal.commit([one, good]), { lost: ["a-1"], unwritable: [] });
        assert.deepEqual(await journal.load("a-1"), before);
      }
      assert.equal((await journal.load("b-1"))?.revision, 1 + stale.length);
      assert.equal((await under.events("a-1")).length, 1);
    });

    test("J2: a job that another program created is lost, not overwritten", async ({ journal }) => {
      await journal.commit([changes({ owner: "first" })]);
      assert.deepEqual(await journal.commit([changes({ owner: "second" })]), {
        lost: ["g-1"],
        unwritable: [],
      });
      assert.deepEqual(await journal.commit([next(3, { jobId: "never" })]), {
        lost: ["never"],
        unwritable: [],
      });
    });

    test("J3: the same part sent again is success and changes nothing", async (under) => {
      const { journal } = under;
      const first = changes({ messages: [message(1, 0)] });
      await journal.commit([first]);
      assert.deepEqual(await journal.commit([first]), written);
      const second = next(1, { firstEventSeq: 2, eventLines: ["{}"] });
      await journal.commit([second]);
      assert.deepEqual(await journal.commit([second]), written);
      assert.equal((await journal.load("g-1"))?.revision, 2);
      assert.equal((await under.events("g-1")).length, 2);
    });

    const file = artifact("0".repeat(64), { artifactId: "art_1" });
    const letter: DeadLetterRecord = {
      deadLetterId: "dl_1",
      agentId: null,
      reason: "ttl_expired",
      attempts: 0,
      message: {} as DeadLetterRecord["message"],
      createdAtMs: 1,
    };
    /** What each job has once, and may not have again. */
    const taken = {
      events: { firstEventSeq: 1, eventLines: ["{}"] },
      messages: { messages: [message(1, 0)] },
      items: { items: [{ agentIndex: 1, firstSeq: 1, bodiesJson: ["1"] }] },
      "dead letters": { deadLetters: [letter] },
      artifacts: { artifacts: [file] },
    } as const;

    for (const [what, part] of Object.entries(taken)) {
      test(`J4: a number of ${what} that is taken changes nothing of its job, and the others are written`, async (under) => {
        const { journal } = under;
        await journal.commit([changes({ jobId: "a-1", ...part }), changes({ jobId: "b-1" })]);
        const before = await journal.load("a-1");
        const again = next(1, { jobId: "a-1", agents: [agent(5)], ...part });
        const good = next(1, { jobId: "b-1", firstEventSeq: 2, eventLines: ['{"n":2}'] });
        const answer = await journal.commit([changes({ jobId: "c-1" }), again, good]);
        assert.deepEqual(answer.lost, []);
        assert.deepEqual(
          answer.unwritable.map(({ jobId }) => jobId),
          ["a-1"],
        );
        assert.deepEqual(await journal.load("a-1"), before);
        assert.equal((await journal.load("c-1"))?.revision, 1);
        assert.deepEqual(await under.events("b-1"), ['{"n":1}', '{"n":2}']);
      });
    }

    test("J4: a job under a run's id that is taken is not there, and the others are written", async ({
      journal,
    }) => {
      const first = changes();
      const twin = changes({ jobId: "g-2", insert: first.insert });
      const answer = await journal.commit([first, twin, changes({ jobId: "g-3" })]);
      assert.deepEqual([answer.lost, answer.unwritable.map(({ jobId }) => jobId)], [[], ["g-2"]]);
      assert.equal(await journal.load("g-2"), null);
      assert.equal((await journal.load("g-3"))?.revision, 1);
    });

    test("a damaged job ends once, with one event after its history, and only for its owner", async (under) => {
      const { journal } = under;
      const items = [{ agentIndex: 1, firstSeq: 1, bodiesJson: ["1"] }];
      const open = changes({ messages: [message(1, 0)], items, tasks: [task(1)] });
      await journal.commit([open]);
      const end = {
        nowMs: 1_700_000_000_900,
        eventLine: '{"n":2}',
        lastEventJson: '{"type":"job_failed"}',
        failureJson: '{"code":"x"}',
        tally: { ...newTally(), errors: 1 },
      };
      assert.equal(await journal.failDamaged("g-1", "stranger", () => assert.fail()), null);
      assert.equal(await journal.failDamaged("never", "owner", () => assert.fail()), null);
      const seq = await journal.failDamaged("g-1", "owner", (job) => {
        const { runId, trace } = open.insert!;
        assert.deepEqual(job, { runId, trace, eventSeq: 1, tally: open.progress.tally });
        return end;
      });
      assert.equal(seq, 2);
      assert.deepEqual(await under.events("g-1"), ['{"n":1}', '{"n":2}']);
      const image = await journal.load("g-1");
      assert.deepEqual([image?.messages, image?.items, image?.tasks], [[], [], []]);
      const { status, updatedAtMs, eventSeq, failureJson, tally, activeExecutors } = image!.progress;
      assert.deepEqual(
        [status, updatedAtMs, eventSeq, failureJson, tally.errors, activeExecutors],
        ["failed", end.nowMs, 2, end.failureJson, 1, 0],
      );
      assert.equal(await journal.failDamaged("g-1", "owner", () => assert.fail()), null);
      assert.deepEqual((await journal.commit([next(1)])).lost, ["g-1"], "what was under way comes too late");
    });

    test("claiming takes open jobs of others, oldest first, a page at a time, and raises their epoch", async ({
      journal,
    }) => {
      const times = [30, 10, 20];
      for (const [i, submittedAtMs] of times.entries()) {
        const job = changes({ jobId: `j-${i}`, owner: "dead" });
        await journal.commit([{ ...job, insert: { ...job.insert!, submittedAtMs, runId: `run_${i}` } }]);
      }
      await journal.commit([
        changes({ jobId: "over", owner: "dead", progress: progress({ status: "completed" }) }),
      ]);
      assert.deepEqual(await journal.claim("me", 2), ["j-1", "j-2"]);
      assert.deepEqual(await journal.claim("me", 2), ["j-0"]);
      assert.deepEqual(
        await journal.claim("other", 2),
        ["j-1", "j-2"],
        "also what another has claimed before",
      );
      assert.deepEqual(await journal.claim("me", 2), ["j-1", "j-2"]);
      assert.deepEqual(await journal.claim("me", 2), []);
      assert.equal((await journal.load("j-0"))?.epoch, 2);
    });

    test("after a claim the old owner's commit is lost, the new owner's is written", async ({ journal }) => {
      await journal.commit([changes({ owner: "dead" })]);
      await journal.claim("me", 10);
      assert.deepEqual(await journal.commit([next(1, { owner: "dead" })]), { lost: ["g-1"], unwritable: [] });
      assert.deepEqual(await journal.commit([next(1, { owner: "me", epoch: 2 })]), written);
    });

    test("J6: a job that was handed over is free, and what its owner writes of it later is lost", async ({
      journal,
    }) => {
      await journal.commit([changes(), changes({ jobId: "g-2" })]);
      const last = next(1, { isHandedOver: true, messages: [message(9, 1)] });
      assert.deepEqual(await journal.commit([last, changes({ jobId: "g-3", isHandedOver: true })]), written);
      assert.deepEqual(await journal.commit([last]), written, "sent again");
      assert.deepEqual((await journal.commit([next(2)])).lost, ["g-1"]);
      assert.deepEqual(await journal.commit([next(1, { jobId: "g-2" })]), written);
      assert.deepEqual((await journal.claim("elsewhere", 9)).filter((id) => id !== "g-2").sort(), [
        "g-1",
        "g-3",
      ]);
      const image = await journal.load("g-1");
      assert.deepEqual([image?.epoch, image?.revision, image?.messages.length], [2, 2, 1]);
      assert.deepEqual((await journal.commit([last])).lost, ["g-1"], "sent again when another has it");
      assert.deepEqual(await journal.commit([next(2, { owner: "elsewhere", epoch: 2 })]), written);
    });

    test("a terminal job has no messages, items or tasks left, and is never claimed", async ({ journal }) => {
      const items = [{ agentIndex: 1, firstSeq: 1, bodiesJson: ["1"] }];
      await journal.commit([changes({ messages: [message(1, 0)], items, tasks: [task(1)] })]);
      const end = progress({ status: "completed", resultJson: '{"ok":true}', partial: true });
      await journal.commit([next(1, { progress: end })]);
      const image = await journal.load("g-1");
      assert.deepEqual([image?.messages, image?.items, image?.tasks], [[], [], []]);
      assert.deepEqual(image?.progress, end);
      assert.deepEqual(await journal.claim("me", 10), []);
    });
  });
}
