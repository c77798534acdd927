// A program of its own, started by docs.ts: takes the script of the interactive documentation out of its package, which
// offers it only through a server that is never started here, and prints it compressed.

import { gzipSync } from "node:zlib";
import scalar from "@scalar/fastify-api-reference";
import Fastify from "fastify";

const app = Fastify();
await app.register(scalar, { routePrefix: "/docs", configuration: { url: "/" } });
const { statusCode, rawPayload } = await app.inject("/docs/js/scalar.js");
if (statusCode !== 200) throw new Error(`the documentation's package has no script (${statusCode})`);
process.stdout.write(gzipSync(rawPayload, { level: 9 }));
