// What the program uses of node:http. An `import` of it would read all of its exports, and one of them loads a second HTTP
// client (undici): 40 ms of each start.

export const { Agent, request, STATUS_CODES } = process.getBuiltinModule("node:http");

/** node:https, which few programs need: loaded when it is first asked for. */
export const httpsOf = () => process.getBuiltinModule("node:https");
