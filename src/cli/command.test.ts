import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sections } from "./catalogue.ts";
import { explain } from "./cli.ts";
import { CommandFailed, type CommandSpec, parseWords, UsageError } from "./command.ts";
import { baseUrl } from "./connection.ts";
import { commandHelp, findCommand, helpFor, isGroup, overview } from "./help.ts";

const entries = sections.flatMap((section) => section.entries);
const commands = entries.flatMap((entry) => (isGroup(entry) ? entry.commands : [entry]));
const command = (...words: string[]) => findCommand(sections, words).spec;
const run = command("run");

function parse(spec: CommandSpec, ...args: string[]) {
  const { words, options } = parseWords(spec, args);
  return { words, options: Object.fromEntries([...options].map(([name, values]) => [name, values.at(-1)])) };
}

describe("the words of a command", () => {
  test("events of a run or a job need no second word, and those for schedules have one", () => {
    assert.equal(command("events", "run_1", "--follow").name, "events of");
    assert.equal(command("events", "--follow", "run_1").name, "events of");
    assert.equal(command("events", "of", "run_1").name, "events of");
    for (const name of ["list", "emit", "show"]) assert.equal(command("events", name).name, `events ${name}`);
  });
  test("options may be before, between and after the words, with = or a space", () => {
    const expected = { words: ["a"], options: { input: "f", json: true } };
    assert.deepEqual(parse(run, "--input", "f", "a", "--json"), expected);
    assert.deepEqual(parse(run, "a", "--json", "--input=f"), expected);
  });
  test("a switch can be turned off", () => {
    assert.deepEqual(parse(run, "a", "--no-watch").options, { watch: false });
    assert.deepEqual(parse(run, "a", "--watch").options, { watch: true });
  });
  test("after -- everything is a word", () =>
    assert.deepEqual(parse(run, "--", "--input").words, ["--input"]));
  test("- is a value, for stdin", () =>
    assert.deepEqual(parse(run, "a", "--input", "-").options, { input: "-" }));
  test("a value may begin with a dash after =", () => {
    assert.deepEqual(parse(command("send"), "j", "a", "--body=-1").options, { body: "-1" });
  });
  test("an option that may be given several times has all its values, in their order", () => {
    const spec = command("blueprint", "run");
    const { options } = parseWords(spec, ["b", "--set", "a=1", "--name", "n", "--set=b=-2"]);
    assert.deepEqual(
      [...options],
      [
        ["set", ["a=1", "b=-2"]],
        ["name", ["n"]],
      ],
    );
  });

  const wrong: readonly (readonly [string, string, readonly string[], RegExp])[] = [
    [
      "an unknown option names the nearest",
      "run",
      ["a", "--inptu", "f"],
      /no option --inptu\. Did you mean --input\?/,
    ],
    ["an option unlike any names the help", "run", ["a", "--frobnicate"], /See troupe run --help/],
    ["an option of another command is unknown", "jobs", ["--watch"], /jobs list has no option --watch/],
    [
      "an option of another subcommand",
      "runs show",
      ["r", "--input", "f"],
      /runs show has no option --input/,
    ],
    ["a subcommand's word is missing", "runs save", ["r"], /<folder> is missing\. Usage: troupe runs save /],
    ["a value is missing at the end", "run", ["a", "--input"], /--input needs a value: --input FILE/],
    ["a value is missing before an option", "run", ["a", "--input", "--json"], /--input needs a value/],
    ["a value is empty", "run", ["a", "--input="], /--input needs a value/],
    ["a switch has a value", "run", ["a", "--json=yes"], /--json is a switch/],
    ["an option with a value is negated", "run", ["a", "--no-input"], /no option --no-input/],
    ["a word is missing", "send", ["job"], /<agent> is missing\. Usage: troupe send <job-id> <agent>/],
    ["there is a word too many", "job", ["a", "b"], /"b" is one word too many/],
  ];
  for (const [name, words, args, message] of wrong) {
    test(`refused: ${name}`, () => {
      assert.throws(() => parse(command(...words.split(" ")), ...args), { name: "UsageError", message });
    });
  }
  test("an optional word may be left out", () => {
    assert.deepEqual(parse(command("help")).words, []);
    assert.deepEqual(parse(command("help"), "run").words, ["run"]);
  });
});

describe("commands", () => {
  test("an unknown command names the nearest", () => {
    assert.throws(() => findCommand(sections, ["cancle"]), {
      name: "UsageError",
      message: /Did you mean cancel\?/,
    });
    assert.throws(() => findCommand(sections, ["zzz"]), { message: /`troupe help` lists all/ });
  });
  test("an unknown subcommand names the nearest, or what an id was meant for", () => {
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [["runs", "strat", "job_1"], /There is no command "runs strat"\. Did you mean runs start\?/],
      [["jobs", "delet"], /Did you mean jobs delete\?/],
      [["jobs", "zzz"], /`troupe help jobs` lists what there is/],
      [["runs", "run_1"], /Did you mean runs show run_1\?/],
      [["bundles", "\x1b[31mx"], /There is no command "bundles x"/],
    ];
    for (const [words, message] of wrong) {
      assert.throws(() => findCommand(sections, words), { name: "UsageError", message });
    }
  });
  test("a group's word alone lists, and options may follow it", () => {
    for (const name of ["bundles", "jobs", "runs"]) {
      assert.equal(command(name).name, `${name} list`);
      assert.equal(command(name, "--json").name, `${name} list`);
    }
    assert.deepEqual(findCommand(sections, ["runs", "start", "job_1", "--watch"]).rest, ["job_1", "--watch"]);
  });
  test("help of a group lists its commands; of a subcommand, its options", () => {
    const group = helpFor(findCommand(sections, ["runs", "--help"])).join("\n");
    assert.match(group, /Usage: troupe runs <command> \[options\]/);
    assert.match(group, /^ {2}runs save <run-id> <folder> +Copy a run's outputs/m);
    assert.match(
      helpFor(findCommand(sections, ["runs", "start", "-h"])).join("\n"),
      /--input FILE +JSON file/,
    );
  });
  test("no two commands have one name, and a group's begin with its word", () => {
    assert.equal(new Set(commands.map(({ name }) => name)).size, commands.length);
    for (const entry of entries.filter(isGroup)) {
      for (const { name } of entry.commands) assert.ok(name.startsWith(`${entry.name} `), name);
    }
  });
  test("each one loads its code", async () => {
    for (const command of commands) assert.equal(typeof (await command.load()), "function", command.name);
  });
  test("each one is in the overview, and explains its words and options", () => {
    const all = overview(sections).join("\n");
    for (const { name, summary } of entries) assert.ok(all.includes(summary), name);
    for (const command of commands) {
      const help = commandHelp(command).join("\n");
      for (const option of command.options) assert.ok(help.includes(`--${option.name}`), option.name);
      assert.ok(help.includes(`Usage: troupe ${[command.name, ...command.words].join(" ")}`));
    }
  });
});

describe("what a command throws becomes an exit code and clean lines", () => {
  const cases: readonly (readonly [Error, number, readonly string[]])[] = [
    [new UsageError("a\nb"), 2, ["troupe: a", "b"]],
    [new CommandFailed("no"), 1, ["troupe: no"]],
  ];
  for (const [error, code, lines] of cases) {
    test(error.name, () => assert.deepEqual(explain(error), { code, lines }));
  }
  test("anything else asks for a report and shows where it came from", () => {
    const { code, lines } = explain(new TypeError("bug"));
    assert.equal(code, 1);
    assert.match(
      lines.join("\n"),
      /unexpected error, please report it:\nTypeError: bug\n.*command\.test\.ts/,
    );
  });
});

describe("--url", () => {
  test("may leave out the path and end with a slash", () => {
    for (const text of ["http://h:1", "http://h:1/", "http://h:1/api/v1", "http://h:1/api/v1/"]) {
      assert.equal(baseUrl(text), "http://h:1/api/v1");
    }
    assert.equal(baseUrl("https://h/behind/proxy/"), "https://h/behind/proxy");
  });
  test("must be an http address", () => {
    for (const text of ["h:1", "ftp://h", "nonsense"])
      assert.throws(() => baseUrl(text), { name: "UsageError" });
  });
});

/** The lines of a page that call the command, without comments, and with one word for each `<placeholder>` and $(…). */
function commandLines(page: string): string[] {
  return readFileSync(page, "utf8")
    .split("\n")
    .filter((line) => /^(?:troupe|node bin\/troupe\.mjs) /.test(line))
    .map((line) =>
      line.replace(/^node bin\/troupe\.mjs/, "troupe").replaceAll(/<[\w -]+>|\$\([^)]*\)/g, "id"),
    )
    .map((line) => line.replace(/\s+(?:#|<<|\|).*/, ""));
}

test("every command that README.md and the pages show is one, with its options", () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const lines = globSync(["README.md", "docs/*.md", "examples/**/*.md"], { cwd: root }).flatMap((page) =>
    commandLines(join(root, page)),
  );
  assert.ok(lines.length > 80, `${lines.length} lines were found`);
  for (const line of lines) {
    const [, ...words] = wordsOf(line);
    const { spec, rest } = findCommand(sections, words);
    // The words of help are themselves commands.
    if (spec.name === "help") findCommand(sections, rest);
    else assert.doesNotThrow(() => parseWords(spec, rest), line);
  }
});

describe("docs/cli.md", () => {
  const page = fileURLToPath(new URL("../../docs/cli.md", import.meta.url));
  const docs = readFileSync(page, "utf8");
  const lines = commandLines(page);

  test("every command has an example, and every option is named", () => {
    const shown = new Set(lines.map((line) => findCommand(sections, wordsOf(line).slice(1)).spec.name));
    for (const { name, options } of commands) {
      assert.ok(shown.has(name), `${name} has no example`);
      for (const option of options) {
        if (option.name !== "help") assert.ok(docs.includes(`--${option.name}`), `${name} --${option.name}`);
      }
    }
  });
});

test("every command that a run's page names is one", () => {
  const folder = new URL("../web/dashboard/", import.meta.url);
  const named = readdirSync(folder)
    .filter((file) => /\.(?:html|js|mjs)$/.test(file))
    .flatMap((file) => [...readFileSync(new URL(file, folder), "utf8").matchAll(/\btroupe((?: [a-z-]+)+)/g)])
    .map(([, words = ""]) => words.trim().split(" "));
  assert.notDeepEqual(named, []);
  for (const words of named) assert.doesNotThrow(() => findCommand(sections, words), words.join(" "));
});

/** The words of a command line; quoted text is one word. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? "",
  );
}
