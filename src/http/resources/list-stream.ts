// The changes of lists, as they happen: GET /stream.

import type { FastifyInstance } from "fastify";
import { topics } from "../../runs/change-notes.ts";
import type { ListStreams } from "../core/list-streams.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { gatewayParameterError } from "./api.ts";
import { hijack } from "./run-streams.ts";

const TOPICS = topics.join(", ");

const StreamQuery = Type.Input({
  topics: Type.String(`Of these, separated by commas: ${TOPICS}. All of them without it.`, {
    maxLength: 200,
    examples: ["runs,human"],
  }),
});

const ResumeHeader = Type.Input({
  "last-event-id": Type.String("The id of the last event that was applied: the stream goes on behind it.", {
    maxLength: 200,
    examples: ["7f3k2m9q-41"],
  }),
});

const LISTS = `Server-sent events for pages that show lists, of all nodes. A \`change\` is {topic, id, changes}: what the record is now, and never a backlog of what it was; of one record there are ten a second at most. Of \`runs\`, changes is the run without inputs, config_overrides, result and links; null: it is gone. Of \`operations\`, the operation. Of \`human\`, \`dead-letters\` and \`services\`, {run_id, status}: pending, answered or timed_out; open or retried; registered, passing, critical or deregistered. Of \`deployments\` and \`schedules\`, {}: read it again. A \`reset\` comes first on a new stream, and when so much has changed, or has been missed, that it is not told one by one: read the lists again, everything behind it follows. Ids are this gateway's own, and resumable for ten minutes: an id that is too old, or of another process, is answered with one \`reset\`.`;

/** What browsers with a share may not read, and runs' tokens neither: it is of all runs. */
export interface Parts {
  readonly lists: ListStreams;
}

export function gatewayRoutes(api: FastifyInstance, { lists }: Parts): void {
  addRoutes(api, "system", [
    get("/stream", {
      operationId: "streamLists",
      summary: "Follow the lists",
      description: LISTS,
      query: StreamQuery,
      headers: ResumeHeader,
      answers: {
        200: {
          description: "Open until the client or the gateway ends it.",
          content: {
            "text/event-stream": {
              schema: Type.String({
                examples: [
                  'id: 7f3k2m9q-41\nevent: change\ndata: {"topic":"human","id":"ship","changes":{"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","status":"pending"}}\n\n',
                ],
              }),
            },
          },
        },
      },
      answersHead: true,
      async handle(request, reply) {
        const asked = topicsOf(request.query.topics);
        const lastId = request.headers["last-event-id"];
        if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
        hijack(request, reply);
        lists.serve(reply.raw, asked, typeof lastId === "string" ? lastId : null);
        return reply;
      },
    }),
  ]);
}

/** @throws Problem for one that is unknown */
function topicsOf(given: string | undefined): ReadonlySet<string> {
  if (given === undefined) return new Set(topics);
  const asked = new Set(given.split(",").map((name) => name.trim()));
  if (asked.isSubsetOf(new Set<string>(topics))) return asked;
  throw gatewayParameterError("topics", "not_allowed", `must be topics, separated by commas: ${TOPICS}`);
}
