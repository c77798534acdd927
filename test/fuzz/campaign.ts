// A campaign: thousands of requests with something wrong, made from the OpenAPI document and a seed, against a program
// that must answer each.
//
// - Request number n of a seed is the same in every campaign, but for the ids that the server makes.

import { Random } from "../simulation/random.ts";
import type { Program } from "../support/program.ts";
import { bytesOf, type Draft, draftOf, type Making } from "./draft.ts";
import { makeFixtures } from "./fixtures.ts";
import { faultOf } from "./judge.ts";
import { mutations } from "./mutations.ts";
import { surfaceOf } from "./surface.ts";
import { Wire } from "./wire.ts";
import { wireMutations } from "./wire-mutations.ts";

/** For the program that is fuzzed: limits that small requests go beyond. */
export const fuzzedEnv = { SVC_BODY_MAX_BYTES: "65536", SVC_BUNDLE_MAX_BYTES: "262144" } as const;

const LANES = 24;
const FAULTS_MAX = 10;

export interface Campaign {
  readonly seed: number;
  /** The first request's number, and how many there are. */
  readonly from: number;
  readonly count: number;
}

export interface Fault {
  readonly number: number;
  readonly what: string;
  /** The request, as far as it is readable. */
  readonly request: string;
}

export interface Report {
  readonly faults: readonly Fault[];
  readonly sent: number;
  /** How many answers had which status; under 0 are connections that were closed without one. */
  readonly statuses: ReadonlyMap<number, number>;
  /** How many requests had which thing wrong. */
  readonly marks: ReadonlyMap<string, number>;
}

export interface Fuzzer {
  run(campaign: Campaign): Promise<Report>;
}

/** Reads the document and makes what requests are about. */
export async function openFuzzer(program: Program): Promise<Fuzzer> {
  const document = (await (await fetch(`${program.url}/openapi.json`)).json()) as object;
  const surface = surfaceOf(document);
  const fixtures = await makeFixtures(program);
  return {
    async run({ seed, from, count }) {
      const faults: Fault[] = [];
      const statuses = new Map<number, number>();
      const marks = new Map<string, number>();
      const end = from + count;
      let next = from;
      const lane = async () => {
        const wire = new Wire(program.url);
        while (next < end && faults.length < FAULTS_MAX) {
          const number = next++;
          const random = new Random(seed ^ Math.imul(number + 1, 0x9e3779b1));
          const draft = spoiled({ surface, fixtures, random }, `fuzz-${number}`);
          const what = await send(draft, number, { wire, program, statuses });
          for (const mark of draft.marks) add(marks, mark);
          if (what !== null) faults.push({ number, what, request: shown(draft) });
        }
        wire.close();
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      return { faults, sent: next - from, statuses, marks };
    },
  };
}

interface Sent {
  readonly wire: Wire;
  readonly program: Program;
  readonly statuses: Map<number, number>;
}

/** @returns what is wrong with what came back */
async function send(draft: Draft, number: number, { wire, program, statuses }: Sent): Promise<string | null> {
  const { answers, leaves, method } = draft;
  const exchange = await wire.send({ pieces: bytesOf(draft), answers, leaves, isHead: method === "HEAD" });
  for (const { status } of exchange.answers) add(statuses, status);
  if (exchange.answers.length === 0) add(statuses, 0);
  return faultOf(draft, `fuzz-${number}`, exchange, program.home);
}

const content = Object.entries(mutations);
const wire = Object.entries(wireMutations);

/** A request with one to three things wrong. */
function spoiled(making: Making, requestId: string): Draft {
  const { random } = making;
  const draft = draftOf(making, requestId);
  for (let times = random.pick([1, 1, 1, 2, 3]); times > 0; times--) {
    const [name, mutate] = random.pick(random.chance(0.75) ? content : wire);
    mutate(draft, making);
    draft.marks.push(name);
  }
  return draft;
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** With every byte visible. */
function shown(draft: Draft): string {
  const text = Buffer.concat(bytesOf(draft)).toString("latin1");
  const visible = JSON.stringify(text.slice(0, 1_500)).replace(
    /[\x7f-\xff]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16)}`,
  );
  return `[${draft.marks.join(", ")}] ${visible} (${text.length} bytes)`;
}
