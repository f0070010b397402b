// A client of the matrix: `client.mjs v1` by the TypeScript SDK 1.x, `client.mjs v2` by 2.x.
//
// Jobs come in on standard input and answers go out, one JSON object a line, as tests/rmcp/src/client.rs
// says; a job can name an event stream of 2024-11-05 as `sse`. What counts is what crossed the transport,
// as it came; that the SDK took it is the member `client`.
import { createInterface } from "node:readline";

const generation = process.argv[2];
const sdk = generation === "v1" ? {
  ...await import("@modelcontextprotocol/sdk/client/index.js"),
  ...await import("@modelcontextprotocol/sdk/client/stdio.js"),
  ...await import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  ...await import("@modelcontextprotocol/sdk/client/sse.js"),
} : {
  ...await import("@modelcontextprotocol/client"),
  ...await import("@modelcontextprotocol/client/stdio"),
};
const REPLY = 30_000;

createInterface({ input: process.stdin }).on("line", async (line) => {
  const job = JSON.parse(line);
  const said = await run(job).catch((error) => ({ failed: String(error?.stack ?? error) }));
  process.stdout.write(`${JSON.stringify({ id: job.id, ...said })}\n`);
});

async function run(job) {
  const tape = { sent: [], received: [] };
  const mode = job.era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new sdk.Client({ name: `matrix-typescript-${generation}`, version: "1.0.0" }, { versionNegotiation: { mode } });
  const transport = tapped(open(job), tape);
  await client.connect(transport);
  try {
    const answers = [];
    for (const request of job.requests) answers.push(await ask(client, tape, request));
    return { version: transport.seenVersion ?? job.era, answers };
  } finally {
    await transport.terminateSession?.();
    await client.close();
  }
}

function open(job) {
  const headers = job.token ? { Authorization: `Bearer ${job.token}` } : {};
  const options = { requestInit: { headers } };
  if (job.url) return new sdk.StreamableHTTPClientTransport(new URL(job.url), options);
  if (job.sse) return new sdk.SSEClientTransport(new URL(job.sse), options);
  const [command, ...args] = job.command;
  return new sdk.StdioClientTransport({ command, args, env: job.env, stderr: "ignore" });
}

// Writes down what passes in both directions.
function tapped(transport, tape) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    tape.sent.push(message);
    return send(message, options);
  };
  let handler;
  Object.defineProperty(transport, "onmessage", {
    get: () => handler,
    set: (inner) => {
      handler = inner && ((message, extra) => {
        tape.received.push(message);
        if (message.result?.protocolVersion) transport.seenVersion = message.result.protocolVersion;
        inner(message, extra);
      });
    },
  });
  return transport;
}

const METHODS = {
  "tools/list": (client, params) => client.listTools(params),
  "tools/call": (client, params, options) => generation === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options),
  "prompts/list": (client, params) => client.listPrompts(params),
  "prompts/get": (client, params) => client.getPrompt(params),
  "resources/list": (client, params) => client.listResources(params),
  "resources/templates/list": (client, params) => client.listResourceTemplates(params),
  "resources/read": (client, params) => client.readResource(params),
  "completion/complete": (client, params) => client.complete(params),
};

async function ask(client, tape, { method, params, follow }) {
  const before = tape.sent.length;
  const abort = new AbortController();
  const options = { timeout: REPLY, signal: abort.signal };
  if (follow) {
    options.onprogress = () => {
      if (follow === "cancel") abort.abort("enough");
    };
  }
  let client_said = "accepted";
  try {
    await METHODS[method](client, params, options);
  } catch (error) {
    client_said = error.code !== undefined && Number.isInteger(error.code) ? "error" : `refused: ${error.message}`;
  }
  if (follow === "cancel") return { cancelled: true };
  const request = tape.sent.slice(before).findLast((message) => message.method === method);
  const answer = tape.received.findLast((message) => message.id === request?.id && message.method === undefined);
  if (!answer) throw new Error(`no answer to ${method}: ${client_said}`);
  const kept = answer.error ? { error: answer.error } : { result: answer.result };
  return { ...kept, client: client_said, ...(follow === "progress" ? { progress: notes(tape, request) } : {}) };
}

// From the tape: the SDK tells its caller of none that came in the same moment as the answer.
function notes(tape, request) {
  const token = request.params._meta.progressToken;
  return tape.received
    .filter((message) => message.method === "notifications/progress" && message.params.progressToken === token)
    .map(({ params: { progress, total, message } }) => ({ progress, total, message }));
}
