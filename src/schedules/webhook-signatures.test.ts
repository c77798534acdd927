// Signatures of webhooks: the examples of those who defined them, and whatever headers say.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import {
  checkSignature,
  type SignedRequest,
  secretFrom,
  secretProblem,
  signatureHeader,
  type WebhookScheme,
  webhookSchemes,
} from "./webhook-signatures.ts";

const NOW_S = 1_700_000_000;
const SECRET = "a secret of this test";

const hmac = (key: string | Buffer, text: string | Buffer) => createHmac("sha256", key).update(text);

/** As the senders of each kind sign. */
function signed(scheme: WebhookScheme, body: Buffer, secret = SECRET, atSeconds = NOW_S): SignedRequest {
  const timed = (head: string) => hmac(secret, Buffer.concat([Buffer.from(head), body]));
  switch (scheme) {
    case "github":
      return { headers: { "x-hub-signature-256": `sha256=${hmac(secret, body).digest("hex")}` }, body };
    case "stripe": {
      const signature = timed(`${atSeconds}.`).digest("hex");
      return { headers: { "stripe-signature": `t=${atSeconds},v1=${signature},v0=old` }, body };
    }
    case "hmac-sha256": {
      const signature = `v1a,other v1,${timed(`msg_1.${atSeconds}.`).digest("base64")}`;
      const headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": String(atSeconds),
        "webhook-signature": signature,
      };
      return { headers, body };
    }
    default:
      return scheme satisfies never;
  }
}

const check = (
  scheme: WebhookScheme,
  request: SignedRequest,
  given: { secret?: string; nowS?: number } = {},
) =>
  checkSignature(
    { scheme, secret: given.secret ?? SECRET, toleranceSeconds: 300 },
    request,
    (given.nowS ?? NOW_S) * 1_000,
  );
const reasonOf = (verdict: ReturnType<typeof check>) =>
  verdict.kind === "refused" ? verdict.reason : "signed";
const body = Buffer.from('{"a":"ü"}');

describe("a signature", () => {
  test("of GitHub's own example is right", () => {
    const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const request = { headers: { "x-hub-signature-256": signature }, body: Buffer.from("Hello, World!") };
    assert.equal(check("github", request, { secret: "It's a Secret to Everybody" }).kind, "signed");
  });

  test("of Standard Webhooks' own example is right", () => {
    const headers = {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    };
    const request = { headers, body: Buffer.from('{"test": 2432232314}') };
    const given = { secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", nowS: 1_614_265_330 };
    assert.equal(check("hmac-sha256", request, given).kind, "signed");
  });

  test("is right when one of several is, as while a sender changes its secret", () => {
    const other = "0".repeat(64);
    const { headers } = signed("stripe", body);
    const several = { "stripe-signature": `${headers["stripe-signature"]},v1=${other}` };
    assert.equal(check("stripe", { headers: several, body }).kind, "signed");
    const standard = signed("hmac-sha256", body).headers;
    const more = {
      ...standard,
      "webhook-signature": `v1,${"A".repeat(43)}= ${standard["webhook-signature"]}`,
    };
    assert.equal(check("hmac-sha256", { headers: more, body }).kind, "signed");
  });

  for (const scheme of webhookSchemes) {
    test(`of ${scheme} holds for this body and this secret alone`, () => {
      const request = signed(scheme, body);
      assert.equal(check(scheme, request).kind, "signed");
      assert.equal(reasonOf(check(scheme, { ...request, body: Buffer.from('{"a":1}') })), "signature");
      assert.equal(reasonOf(check(scheme, request, { secret: `${SECRET}!` })), "signature");
      for (const other of webhookSchemes.filter((one) => one !== scheme))
        assert.equal(reasonOf(check(other, request)), "signature");
    });

    test(`of ${scheme} that is missing is asked for by the header's name`, () => {
      const verdict = check(scheme, { headers: {}, body });
      assert.equal(verdict.kind === "refused" && verdict.message.includes(signatureHeader[scheme]), true);
    });
  }

  for (const scheme of ["stripe", "hmac-sha256"] as const)
    test(`of ${scheme} is good for the tolerance, in both directions, and its time is signed`, () => {
      const request = signed(scheme, body);
      for (const nowS of [NOW_S - 300, NOW_S + 300])
        assert.equal(check(scheme, request, { nowS }).kind, "signed");
      for (const nowS of [NOW_S - 301, NOW_S + 301])
        assert.equal(reasonOf(check(scheme, request, { nowS })), "time");
      const later = JSON.parse(
        JSON.stringify(request.headers).replaceAll(String(NOW_S), String(NOW_S + 400)),
      ) as SignedRequest["headers"];
      assert.equal(reasonOf(check(scheme, { headers: later, body }, { nowS: NOW_S + 400 })), "signature");
    });

  test("that is repeated with another time has the same digest, and another message or body another one", () => {
    const digestOf = (request: SignedRequest, scheme: WebhookScheme, nowS = NOW_S) => {
      const verdict = check(scheme, request, { nowS });
      assert.equal(verdict.kind, "signed");
      return verdict.kind === "signed" ? verdict.digest : "";
    };
    for (const scheme of webhookSchemes) {
      const first = digestOf(signed(scheme, body), scheme);
      assert.equal(digestOf(signed(scheme, body, SECRET, NOW_S + 9), scheme, NOW_S + 9), first);
      assert.notEqual(digestOf(signed(scheme, Buffer.from("{}")), scheme), first);
    }
    const headers = {
      "webhook-id": "msg_2",
      "webhook-timestamp": String(NOW_S),
      "webhook-signature": `v1,${hmac(SECRET, Buffer.concat([Buffer.from(`msg_2.${NOW_S}.`), body])).digest("base64")}`,
    };
    const [one, two] = [signed("hmac-sha256", body), { headers, body }];
    assert.notEqual(digestOf(one, "hmac-sha256"), digestOf(two, "hmac-sha256"));
  });

  test("of a message id with a dot is refused: what is signed could be read in two ways", () => {
    const signature = hmac(SECRET, `a.1.${NOW_S}.5`).digest("base64");
    const headers = {
      "webhook-id": "a.1",
      "webhook-timestamp": String(NOW_S),
      "webhook-signature": `v1,${signature}`,
    };
    assert.equal(reasonOf(check("hmac-sha256", { headers, body: Buffer.from("5") })), "signature");
  });
});

describe("properties", () => {
  const anyScheme = fc.constantFrom(...webhookSchemes);
  const anyBytes = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));

  test("whatever is signed as it should be is accepted", () => {
    fc.assert(
      fc.property(anyScheme, anyBytes, fc.string({ minLength: 1 }), (scheme, bytes, secret) => {
        fc.pre(!secret.startsWith("whsec_"));
        return check(scheme, signed(scheme, bytes, secret), { secret }).kind === "signed";
      }),
    );
  });

  test("whatever the headers say, a request without the signature is refused, and nothing throws", () => {
    const pieces = fc.constantFrom(
      "sha256=",
      "t=",
      "v1=",
      "v1,",
      ",",
      " ",
      "=",
      ".",
      `${NOW_S}`,
      "a".repeat(64),
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 12 }).map((list) => list.join("")),
    );
    const names = [
      "x-hub-signature-256",
      "stripe-signature",
      "webhook-id",
      "webhook-timestamp",
      "webhook-signature",
    ];
    const anyHeaders = fc.record(Object.fromEntries(names.map((name) => [name, text])), { requiredKeys: [] });
    fc.assert(
      fc.property(anyScheme, anyHeaders, anyBytes, (scheme, headers, bytes) => {
        const verdict = check(scheme, { headers, body: bytes });
        return verdict.kind === "refused" && verdict.message.endsWith(".");
      }),
    );
  });

  test("one changed byte of the body, or of the signature, is noticed", () => {
    fc.assert(
      fc.property(anyScheme, anyBytes, fc.nat(), (scheme, bytes, at) => {
        fc.pre(bytes.length > 0);
        const changed = Buffer.from(bytes);
        changed[at % bytes.length] = (changed[at % bytes.length] ?? 0) ^ 1;
        return check(scheme, { ...signed(scheme, bytes), body: changed }).kind === "refused";
      }),
    );
  });
});

test("a made secret fits its scheme, and one that cannot be a key is refused", () => {
  const bytes = Buffer.alloc(32, 200);
  for (const scheme of webhookSchemes) {
    const secret = secretFrom(scheme, bytes);
    assert.equal(secretProblem(scheme, secret), null);
    assert.ok(secret.length >= 43);
  }
  assert.equal(secretFrom("hmac-sha256", bytes), `whsec_${bytes.toString("base64")}`);
  for (const secret of ["whsec_", "whsec_*", "whsec_ab"])
    assert.match(String(secretProblem("hmac-sha256", secret)), /base64/);
  assert.equal(secretProblem("stripe", "whsec_*"), null);
});
