import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { commands } from "./catalogue.ts";
import { explain } from "./cli.ts";
import { ApiError, Unreachable } from "./client.ts";
import { CommandFailed, type CommandSpec, parseWords, UsageError } from "./command.ts";
import { baseUrl } from "./connection.ts";
import { commandHelp, findCommand, overview } from "./help.ts";

const run = findCommand("run");

function parse(spec: CommandSpec, ...args: string[]) {
  const { words, options } = parseWords(spec, args);
  return { words, options: Object.fromEntries(options) };
}

describe("the words of a command", () => {
  test("options may stand before, between and behind the words, with = or a space", () => {
    const expected = { words: ["a"], options: { input: "f", json: true } };
    assert.deepEqual(parse(run, "--input", "f", "a", "--json"), expected);
    assert.deepEqual(parse(run, "a", "--json", "--input=f"), expected);
  });
  test("a switch can be turned off", () => {
    assert.deepEqual(parse(run, "a", "--no-watch").options, { watch: false });
    assert.deepEqual(parse(run, "a", "--watch").options, { watch: true });
  });
  test("behind -- everything is a word", () =>
    assert.deepEqual(parse(run, "--", "--input").words, ["--input"]));
  test("- is a value, for stdin", () =>
    assert.deepEqual(parse(run, "a", "--input", "-").options, { input: "-" }));
  test("a value may begin with a dash behind =", () => {
    assert.deepEqual(parse(findCommand("send"), "j", "a", "--body=-1").options, { body: "-1" });
  });

  const wrong: readonly (readonly [string, string, readonly string[], RegExp])[] = [
    [
      "an unknown option names the nearest",
      "run",
      ["a", "--inptu", "f"],
      /no option --inptu\. Did you mean --input\?/,
    ],
    ["an option unlike any names the help", "run", ["a", "--frobnicate"], /See troupe run --help/],
    ["an option of another command is unknown", "jobs", ["--watch"], /no option --watch/],
    ["a value is missing at the end", "run", ["a", "--input"], /--input needs a value: --input FILE/],
    ["a value is missing before an option", "run", ["a", "--input", "--json"], /--input needs a value/],
    ["a value is empty", "run", ["a", "--input="], /--input needs a value/],
    ["a switch has a value", "run", ["a", "--json=yes"], /--json is a switch/],
    ["an option with a value is negated", "run", ["a", "--no-input"], /no option --no-input/],
    ["a word is missing", "send", ["job"], /<agent> is missing\. Usage: troupe send <job-id> <agent>/],
    ["there is a word too many", "job", ["a", "b"], /"b" is one word too many/],
  ];
  for (const [name, command, args, message] of wrong) {
    test(`refused: ${name}`, () => {
      assert.throws(() => parse(findCommand(command), ...args), { name: "UsageError", message });
    });
  }
  test("an optional word may be left out", () => {
    assert.deepEqual(parse(findCommand("help")).words, []);
    assert.deepEqual(parse(findCommand("help"), "run").words, ["run"]);
  });
});

describe("commands", () => {
  test("an unknown command names the nearest", () => {
    assert.throws(() => findCommand("cancle"), { name: "UsageError", message: /Did you mean cancel\?/ });
    assert.throws(() => findCommand("zzz"), { message: /`troupe help` lists all/ });
  });
  test("each one loads its code", async () => {
    for (const command of commands) assert.equal(typeof (await command.load()), "function", command.name);
  });
  test("each one is in the overview, and explains its words and options", () => {
    const all = overview().join("\n");
    for (const command of commands) {
      assert.ok(all.includes(command.summary), command.name);
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
    [new ApiError(404, "Job \x1b[31mx was not found"), 1, ["troupe: Job x was not found (HTTP 404)"]],
    [
      new Unreachable("nobody"),
      1,
      ["troupe: nobody", "Start one with `troupe up`, or name another with --url."],
    ],
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
