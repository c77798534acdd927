// The credentials of the bucket in SVC_BLOB_URL, under the names that every program for such stores reads.
//
// They are no settings of this program alone: without a bucket, variables of these names are the workers' own. With one
// they are withheld from workers.

import type { S3Credentials } from "../store/shared/s3-requests.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const variables = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] as const;

/** @returns the credentials, or what is wrong with them as a line, which does not repeat them */
export function bucketCredentials(env: Environment): S3Credentials | string {
  const [accessKeyId, secretAccessKey, sessionToken] = variables.map((name) => env[name]?.trim() ?? "");
  if (!accessKeyId || !secretAccessKey) {
    return "SVC_BLOB_URL: a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Example: AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE";
  }
  const wrong = variables.find((name) => !/^[\x21-\x7e]{0,8192}$/.test(env[name]?.trim() ?? ""));
  if (wrong !== undefined) {
    return `${wrong}: the value must be visible ASCII characters without spaces. Example: AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE`;
  }
  return Object.freeze({ accessKeyId, secretAccessKey, sessionToken: sessionToken || null });
}

/** The environment that workers may be given parts of. @param credentials null without a bucket */
export function workersEnvironment(env: Environment, credentials: S3Credentials | null): Environment {
  if (credentials === null) return env;
  const withheld: readonly string[] = variables;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !withheld.includes(name)));
}
