// Finding the passages of evidence that a question is about, by BM25, and answering with nothing but them.
//
// - A passage is a line of an item, or a sentence of a long line; a quote is a passage as it stands there.
// - Words are told apart by Unicode's rules, so that questions may be in any language that these rules split.
// - A question is answered only when one passage holds half of its words at least; the small words of its language do
//   not count.

import MiniSearch, { type SearchResult } from "minisearch";
import * as stopwords from "stopword";
import type { EvidenceItem } from "./evidence.ts";

const PASSAGES_MAX = 4_000;
const PASSAGE_CHARS_MAX = 400;
/** Passages that an answer consists of. */
const QUOTES_MAX = 5;
/** An answer's further passages are about as good as its best one. */
const SCORE_SHARE = 0.5;
const WORDS_SHARE = 0.5;
/** How much more passages count that say what came of a run, and not what the job is. */
const OUTCOME_BOOST = 1.5;
const outcomes: ReadonlySet<string> = new Set(["result", "failure", "decision", "output"]);
/** How much more those count that belong to what an earlier answer has cited. */
const EARLIER_BOOST = 3;

export interface Citation {
  /** Of the item of evidence. */
  readonly id: string;
  /** A passage, exactly as it stands in the item's text. */
  readonly quote: string;
}

interface Passage extends Citation {
  readonly place: number;
  readonly about: string;
  readonly boost: number;
}

const wordsIn = new Intl.Segmenter(undefined, { granularity: "word" });
const sentencesIn = new Intl.Segmenter(undefined, { granularity: "sentence" });

/** Names such as `unit_price` and `order.total` are several words. */
const wordsOf = (text: string): string[] =>
  [...wordsIn.segment(text)]
    .filter(({ isWordLike }) => isWordLike === true)
    .flatMap(({ segment }) => segment.split(/[_.]+/))
    .filter((word) => word !== "");

const normal = (word: string) => word.normalize("NFKC").toLowerCase();

export class EvidenceIndex {
  readonly #search: MiniSearch<Passage>;
  readonly #passages: readonly Passage[];
  /** Whether there was more than is searched. */
  readonly isCut: boolean;

  private constructor(passages: readonly Passage[]) {
    this.#passages = passages.slice(0, PASSAGES_MAX);
    this.isCut = passages.length > PASSAGES_MAX;
    this.#search = new MiniSearch<Passage>({
      idField: "place",
      fields: ["quote", "about"],
      tokenize: wordsOf,
      processTerm: normal,
    });
  }

  /** Lets others have their turn in between. */
  static async of(items: readonly EvidenceItem[]): Promise<EvidenceIndex> {
    const index = new EvidenceIndex(
      items.flatMap(passagesOf).map((passage, place) => ({ ...passage, place })),
    );
    await index.#search.addAllAsync(index.#passages, { chunkSize: 100 });
    return index;
  }

  /**
   * The passages that a question is about, best first; none when the evidence does not hold an answer.
   *
   * @param earlier ids that earlier answers have cited: a follow-up is about these first
   */
  find(question: string, earlier: readonly string[]): readonly Citation[] {
    const asked = askedWords(question);
    const named = new Set(earlier);
    const found = this.#search.search(asked.join(" "), {
      boost: { quote: 2 },
      prefix: (word) => word.length > 3,
      fuzzy: (word) => (word.length > 5 ? 0.2 : false),
      boostDocument: (place) => {
        const { id, boost } = this.#passages[place as number]!;
        return named.has(id) ? boost * EARLIER_BOOST : boost;
      },
    });
    const fitting = found.filter((one) => one.queryTerms.length >= WORDS_SHARE * asked.length);
    const least = SCORE_SHARE * (fitting[0]?.score ?? 0);
    return fitting
      .filter(({ score }) => score >= least)
      .slice(0, QUOTES_MAX)
      .map((one: SearchResult) => this.#passages[one.id as number]!)
      .map(({ id, quote }) => ({ id, quote }));
  }
}

function passagesOf({ id, kind, title, text }: EvidenceItem): readonly Omit<Passage, "place">[] {
  const about = `${kind} ${title}`;
  const boost = outcomes.has(kind) ? OUTCOME_BOOST : 1;
  return text
    .split("\n")
    .flatMap((line) => (line.length > PASSAGE_CHARS_MAX ? sentencesOf(line) : [line]))
    .map((passage) => passage.trim())
    .filter((passage) => passage !== "")
    .map((quote) => ({ id, about, boost, quote }));
}

/** What is no sentence for its length is cut into pieces. */
const sentencesOf = (line: string): readonly string[] =>
  [...sentencesIn.segment(line)].flatMap(
    ({ segment }) => segment.match(new RegExp(`[^]{1,${PASSAGE_CHARS_MAX}}`, "gu")) ?? [],
  );

const smallWords: readonly ReadonlySet<string>[] = Object.values(stopwords)
  .filter((list) => Array.isArray(list))
  .map((list) => new Set(list));

/** The words of a question without the small ones of its language: of the list that knows most of them. */
function askedWords(question: string): readonly string[] {
  const words = [...new Set(wordsOf(question).map(normal))];
  const [known] = smallWords
    .map((list) => words.filter((word) => list.has(word)))
    .sort((a, b) => b.length - a.length);
  const left = words.filter((word) => !known?.includes(word));
  return left.length === 0 ? words : left;
}
