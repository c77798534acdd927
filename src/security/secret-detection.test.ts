// Which names and texts are secrets: two tables, and what must hold for every name of each.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { holdsSecret, looksSecret, secretsInText } from "./secret-detection.ts";

const words = (text: string) => text.trim().split(/\s+/);

/** In snake case; every other notation is tried too. */
const secret = words(`
  api_key api_keys x_api_key openai_api_key apikey stripe_key azure_key openai_key
  access_key access_keys aws_secret_access_key accesskey account_key session_key signing_key encryption_key
  master_key license_key ssh_key ssh_keys tls_key client_key
  private_key private_keys private_key_pem private_key_passphrase
  secret secrets client_secret webhook_secret_v2 secret_key_base vault_secret_id shared_secrets
  password passwords db_password pgpassword mysqlpassword password_old password_hash root_passwd userpasswd
  passphrase key_passphrase pass_phrase passcode passkey
  pass smtp_pass db_pass dbpass ftp_pass_prod pwd db_pwd mysql_pwd
  credential credentials credentials_pass creds aws_creds
  token access_token access_tokens api_tokens refresh_tokens github_token github_token_prod token_for_prod_env
  auth_token id_token csrf_token next_page_token bearer bot_tokens
  authorization proxy_authorization authorization_code auth_header basic_auth
  cookie cookies set_cookie session_cookie
  jwt otp totp connection_string conn_str seed_phrase
`);

const harmless = words(`
  token_count max_tokens max_output_tokens prompt_tokens completion_tokens input_tokens tokens total_tokens
  tokens_per_minute cost_per_token token_limit token_budget token_url token_uri token_type token_ttl token_expires_at
  token_endpoint tokenizer tokenize stop_tokens eos_token pad_token_id mask_token special_tokens max_token
  key keys keyboard keyword keywords monkey hotkey primary_key foreign_key public_key sort_key cache_key
  idempotency_key object_key key_file key_path access_key_id api_key_env api_key_id api_key_prefix private_key_path
  secretary secret_name secret_ref secret_arn secrets_manager max_secrets secret_version
  password_min_length min_password_length password_file password_policy password_hint password_reset password_required
  author authors authority authentication auth auth_url authorization_url authorized
  cookie_name cookie_domain cookie_max_age cookie_secure cookie_jar
  credentials_file credential_id
  pass_count pass_rate pass_env passes bypass compass passenger passive first_pass max_pass oldpwd
  connection connections connection_timeout network_private model url name session_id bearer_format
`);

/** How a name of words may be written. */
function notations(snake: string): readonly string[] {
  const parts = snake.split("_");
  const capital = (part: string) => part.charAt(0).toUpperCase() + part.slice(1);
  const camel = parts.map((part, i) => (i === 0 ? part : capital(part))).join("");
  return [
    snake,
    parts.join("-"),
    parts.join("."),
    parts.join(" "),
    camel,
    parts.map(capital).join(""),
    parts.map(capital).join("-"),
    `_${snake}`,
  ];
}

describe("names", () => {
  it("of secrets are found in every notation", () => {
    for (const name of secret)
      for (const one of [...notations(name), name.toUpperCase()]) {
        // PWD alone is a shell's working directory.
        if (one !== "PWD") assert.ok(looksSecret(one), one);
      }
  });

  it("that are harmless stay so in every notation", () => {
    for (const name of harmless)
      for (const one of [...notations(name), name.toUpperCase()]) {
        assert.ok(!looksSecret(one), one);
      }
    assert.ok(!looksSecret("PWD"));
  });

  it("of secrets stay so with a version, a number, or a word of one's own around them", () => {
    for (const name of secret) {
      // These are secrets only where nothing, or one of few words, stands beside them.
      if (/^(?:pass|pwd)$/.test(name)) continue;
      for (const one of [`${name}_v2`, `${name}2`, `${name}_1`, `acme_${name}`, `${name}_acme`]) {
        assert.ok(looksSecret(one), one);
      }
    }
  });

  it("that only speak about a secret are known by the word right after it", () => {
    for (const name of ["api_key", "client_secret", "db_password", "access_token", "private_key", "cookie"]) {
      for (const about of ["length", "count", "url", "file", "path", "name", "ttl", "expires_at", "policy"]) {
        for (const one of notations(`${name}_${about}`)) assert.ok(!looksSecret(one), one);
      }
      // One further away does not make a secret harmless.
      assert.ok(looksSecret(`${name}_of_the_file`), name);
    }
  });

  it("of any form are judged, however long", () => {
    for (const text of ["", "_", "__proto__", "ключ", "🔑", "A".repeat(100_000), "_".repeat(100_000)]) {
      assert.ok(!looksSecret(text));
    }
    assert.ok(looksSecret(`${"x_".repeat(50_000)}password`));
  });
});

describe("texts", () => {
  it("with a password in an address are secrets under any name; the password is known alone too", () => {
    for (const [text, password] of [
      ["postgres://user:pa55word@db.example.org:5432/app", "pa55word"],
      ["postgresql+asyncpg://user:p%40ss%2Fword@db/app", "p@ss/word"],
      ["redis://:only-password@[::1]:6379/0", "only-password"],
      ["https://oauth2:ghp_abcdef@github.com/a/b.git", "ghp_abcdef"],
      ["amqp://u:with@sign@mq/vhost", "with@sign"],
      ["mongodb+srv://u:sl/ash@cluster/x?retryWrites=true", "sl/ash"],
      ["jdbc:postgresql://db/app?user=me&password=in-query", "in-query"],
      ["jdbc:sqlserver://db;user=me;password=in-semicolons;x=y", "in-semicolons"],
      ["https://api.example.org/v1?api_key=in-parameter#top", "in-parameter"],
      ["connect with --db=postgres://u:embedded1@h/d please", "embedded1"],
    ] as const) {
      assert.ok(holdsSecret(text), text);
      assert.ok(secretsInText(text).includes(password), `${text}: ${secretsInText(text).join(" ")}`);
    }
    assert.ok(holdsSecret("-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----"));
  });

  it("without one are not", () => {
    for (const text of [
      "https://example.org/a:b@c",
      "http://127.0.0.1:4873/@scope/package",
      "http://[::1]:4000/x@y",
      "postgres://user@db.example.org/app",
      "ssh://git@github.com:22/a/b",
      "https://example.org/?q=a:b@c&max_tokens=5",
      "mailto:user:pass@example.org",
      "see https://example.org: it has a user@example.org",
      "-----BEGIN PUBLIC KEY-----",
      "://:@",
      "",
    ]) {
      assert.ok(!holdsSecret(text), text);
      assert.deepEqual(secretsInText(text), [], text);
    }
    for (const value of [null, 5, true, {}, []]) assert.ok(!holdsSecret(value));
  });

  it("cost what is linear in them", () => {
    // What was quadratic in a million characters would take minutes.
    const parts = ["a", "://", "a://", "a://:", "a://b:c", "a://b:c@", "?a=", "@"];
    for (const part of parts) holdsSecret(`x://y${part.repeat(1_000_000 / part.length)}`);
  });
});
