import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { executorConfig } from "../../../test/support/execution.ts";
import { countTurns, endEachSlice } from "../../../test/support/turns.ts";
import { makeRedactor, Redactors, secretsOf } from "./redaction.ts";

describe("redaction", () => {
  it("takes secrets from pass_env, secret-looking environment, and those that it is given", () => {
    const config = executorConfig({
      passEnv: ["GIVEN", "ABSENT"],
      environment: { API_KEY: "key-value-1", MODEL: "not-a-secret" },
    });
    const env = {
      GIVEN: "given-value",
      OTHER: "other-value",
    };
    assert.deepEqual(secretsOf(config, ["configured-secret"], env), [
      "given-value",
      "key-value-1",
      "configured-secret",
    ]);
    assert.deepEqual(secretsOf(config, [], {}), ["key-value-1"]);
  });

  it("replaces every occurrence, the longest secret first, pattern characters taken literally", () => {
    const redactor = makeRedactor(["secret-1", "secret-1-long", "a.b*c(d)e+"]);
    assert.equal(
      redactor.text("x secret-1-long y secret-1 z a.b*c(d)e+ aXb*c(d)e+"),
      "x [redacted] y [redacted] z [redacted] aXb*c(d)e+",
    );
    // Overlap for the longest form: 13 characters in base64.
    assert.equal(redactor.longestChars, 17);
  });

  it("leaves no end of a secret in the middle of base64, padded or not; and finds URLs of either case", () => {
    for (const secret of ["0123456789abcdef", "0123456789abcde", "0123456789abcd", "??>>~~??>>~~ü+/&="]) {
      const redactor = makeRedactor([secret]);
      for (const before of ["", "u", "us", "use"]) {
        for (const after of ["", "r", "rs", "rst"]) {
          const text = before + secret + after;
          const base64 = Buffer.from(text).toString("base64");
          for (const spelling of [
            base64,
            base64.replaceAll("=", ""),
            Buffer.from(text).toString("base64url"),
            base64.replaceAll("/", "\\/"),
            encodeURIComponent(base64),
            encodeURIComponent(base64).replace(/%../g, (hex) => hex.toLowerCase()),
          ]) {
            const [left = "", right = "not found"] = redactor.text(spelling).split("[redacted]");
            assert.ok(
              left.replace(/%..|\\\//g, "/").length <= Math.ceil((before.length * 4) / 3),
              `${secret} in ${spelling}: ${left}`,
            );
            // Whole characters of what follows, and its padding.
            assert.ok(
              right.replace(/=|%3d/gi, "").length <= Math.ceil((after.length * 4) / 3),
              `${secret} in ${spelling}: ${right}`,
            );
          }
        }
      }
      const url = encodeURIComponent(secret);
      for (const spelling of [url, url.replace(/%../g, (hex) => hex.toLowerCase())]) {
        assert.equal(redactor.text(spelling), "[redacted]", spelling);
      }
    }
  });

  it("leaves values of fewer than 8 characters alone", () => {
    assert.equal(makeRedactor(["1234567"]).text("1234567"), "1234567");
    assert.equal(makeRedactor(["12345678"]).text("12345678"), "[redacted]");
  });

  it("redacts the single lines of a secret that has several", () => {
    const redactor = makeRedactor(["-----BEGIN KEY-----\nMIIEvgIBADAN\nshort"]);
    assert.equal(redactor.text("MIIEvgIBADAN short"), "[redacted] short");
  });

  it("finds a secret as JSON and URLs spell it, and within base64 at any place", () => {
    const secret = 'pass/"wörd"\\+1';
    const redactor = makeRedactor([secret]);
    const forms = [JSON.stringify(secret), `https://x/?key=${encodeURIComponent(secret)}`];
    for (const before of ["", "u", "us", "user:"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        forms.push(Buffer.from(`${before}${secret}, and more`).toString(encoding));
      }
    }
    for (const form of forms) {
      const shown = redactor.text(form);
      assert.match(shown, /\[redacted\]/, form);
      const decoded = Buffer.from(shown.replaceAll("[redacted]", ""), "base64").toString();
      assert.doesNotMatch(`${shown} ${decoded}`, /w(?:ö|%C3%B6)rd/);
    }
  });

  it("finds a secret in JSON within JSON, and as writers of other languages escape it", () => {
    const secret = 'a/b "c" \\ d\\"ü\te\u{1f600}';
    const redactor = makeRedactor([secret]);
    const ascii = (text: string) =>
      text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
    let text = secret;
    for (let times = 0; times < 5; times++) {
      for (const spelled of [
        text,
        ascii(text),
        ascii(text).replaceAll("\\u", "\\\\u"),
        text.replaceAll("/", "\\/"),
      ]) {
        assert.equal(redactor.text(`x${spelled}y`), "x[redacted]y", spelled);
      }
      text = JSON.stringify(text).slice(1, -1);
    }
    assert.equal(redactor.text(secret.replace("ü", "u")), secret.replace("ü", "u"));
  });

  it("takes no longer for a text that is made to hold it up", () => {
    const redactor = makeRedactor(['\\"\\"\\"\\"\\', '"""""""""', "\\".repeat(12)]);
    const hostile = "\\".repeat(200_000) + '\\"'.repeat(100_000);
    assert.ok(redactor.text(hostile).length > 0);
  });

  it("finds secrets of any length and number", () => {
    const ofChars = (chars: number) => 'a long "line" of a secret; '.repeat(chars / 27);
    const lines = Array.from({ length: 10_000 }, (_, n) => `line ${n} of a secret`).join("\n");
    for (const secret of [ofChars(5_000), ofChars(30_000), ofChars(500_000), "ü".repeat(10_000), lines]) {
      const forms = [
        secret,
        JSON.stringify(secret).slice(1, -1),
        encodeURIComponent(secret),
        Buffer.from(`${secret}...`).toString("base64"),
      ];
      for (const others of [[], ["short-secret"]]) {
        const redactor = makeRedactor([secret, ...others]);
        for (const form of forms) {
          const shown = redactor.text(`x ${form} ${others.join()} y`);
          const isFound = /^x \[redacted\]\S{0,8} (?:\[redacted\])? y$/.test(shown);
          assert.ok(isFound, `${secret.slice(0, 10)}: ${shown.length} characters are left`);
        }
        assert.equal(redactor.text("nothing of it"), "nothing of it");
      }
    }
  });

  it("finds each of hundreds of secrets that begin alike, alone and all in one text", () => {
    const secrets = Array.from({ length: 500 }, (_, n) => `the-beginning-of-all-of-them-${n}`);
    const redactor = makeRedactor(secrets);
    for (const secret of secrets) assert.equal(redactor.text(`x ${secret} y`), "x [redacted] y");
    assert.equal(redactor.text(secrets.join(" ")), secrets.map(() => "[redacted]").join(" "));
    const inBase64 = secrets.map((secret) => Buffer.from(`${secret}...`).toString("base64"));
    assert.match(redactor.text(inBase64.join(" ")), /^(?:\[redacted\]\S{0,6} ?){500}$/);
  });

  it("leaves nothing of secrets that overlap", () => {
    const redactor = makeRedactor([
      "abcdefgh-12345678",
      "12345678-zyxwvuts",
      "/begins-with-a-slash",
      "ends-with-one\\",
    ]);
    assert.equal(redactor.text("x abcdefgh-12345678-zyxwvuts y"), "x [redacted] y");
    assert.equal(redactor.text("x ends-with-one\\/begins-with-a-slash y"), "x [redacted] y");
  });

  it("is made once for the same secrets, and never taken for that of others", () => {
    const redactors = new Redactors();
    const one = redactors.of(["secret-value-1", "secret-value-2"]);
    assert.equal(redactors.of(["secret-value-1", "secret-value-2"]), one);
    assert.notEqual(redactors.of(["secret-value-1"]), one);
    for (let n = 0; n < 100; n++) {
      assert.equal(redactors.of([`secret-no-${n}`]).text(`x secret-no-${n}`), "x [redacted]");
    }
    assert.notEqual(redactors.of(["secret-value-1", "secret-value-2"]), one);
  });

  it("is made of many secrets in slices, with pauses for other work", async (t) => {
    const many = Array.from({ length: 500 }, (_, n) => `secret-no-${n}`);
    const redactors = new Redactors();
    using counted = countTurns();
    endEachSlice(t);
    const redactor = await redactors.made(many);
    assert.ok(counted.turns >= 490, `${counted.turns} turns`);
    assert.equal(redactor.text("secret-no-7 and secret-no-499"), "[redacted] and [redacted]");
    assert.equal(redactors.of(many), redactor);
    assert.equal(await redactors.made(many), redactor);
  });

  it("leaves nothing of a secret where a text was cut", () => {
    const redactor = makeRedactor(["secret-value-1", "other-secret"]);
    for (let cut = 1; cut < 14; cut++) {
      const head = `other-secret other-secret: ${"secret-value-1".slice(0, cut)}`;
      assert.doesNotMatch(redactor.cutText(head), /s|-v|1/);
      const tail = `${"secret-value-1".slice(cut)} and then other-secret`;
      assert.doesNotMatch(redactor.tailText(tail), /ecre|valu|ue-1/);
    }
    assert.equal(makeRedactor([]).cutText("whole"), "whole");
    assert.equal(makeRedactor([]).tailText("whole"), "whole");
  });

  it("redacts strings and keys deep inside JSON", () => {
    const redactor = makeRedactor(["secret-1"]);
    assert.deepEqual(redactor.json({ "secret-1": [1, null, { a: "xsecret-1" }] }), {
      "[redacted]": [1, null, { a: "x[redacted]" }],
    });
  });
});
