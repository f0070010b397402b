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
  ...await import("@modelcontextprotocol/sdk/types.js"),
} : {
  ...await import("@modelcontextprotocol/client"),
  ...await import("@modelcontextprotocol/client/stdio"),
};
const REPLY = 30_000;
// An update is told within so long.
const TOLD = 10_000;

createInterface({ input: process.stdin }).on("line", async (line) => {
  const job = JSON.parse(line);
  const said = await run(job).catch((error) => ({ failed: String(error?.stack ?? error) }));
  process.stdout.write(`${JSON.stringify({ id: job.id, ...said })}\n`);
});

async function run(job) {
  const tape = { sent: [], received: [] };
  const mode = job.era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const capabilities = { elicitation: { form: {}, url: {} } };
  const client = new sdk.Client({ name: `matrix-typescript-${generation}`, version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
  const questions = [];
  client.setRequestHandler(generation === "v1" ? sdk.ElicitRequestSchema : "elicitation/create", async (request) => {
    questions.push(request.params);
    return { action: "accept", content: { reason: "because" } };
  });
  const transport = tapped(open(job), tape);
  await client.connect(transport);
  try {
    const answers = [];
    for (const request of job.requests) {
      if (request.follow === "updated") answers.push(await subscribe(job.era, client, tape, request.params));
      else if (request.follow === "changed") answers.push(await changed(job.era, client, tape, request.params));
      else answers.push(await ask(client, tape, questions, request));
    }
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

async function ask(client, tape, questions, { method, params, follow }) {
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
  if (follow === "answer") kept.asked = questions.splice(0);
  return { ...kept, client: client_said, ...(follow === "progress" ? { progress: notes(tape, request) } : {}) };
}

// Subscribes as the era has it, has the tool say that the resource changed, and gives what was told.
async function subscribe(era, client, tape, { uri, own, touch }) {
  const told = notifications(tape, "notifications/resources/updated");
  let stop;
  try {
    if (era === "modern") {
      const subscription = await client.listen({ resourceSubscriptions: [uri] });
      stop = () => subscription.close();
      if (!subscription.honoredFilter.resourceSubscriptions?.includes(uri)) throw new Error("it is not accepted");
    } else {
      await client.subscribeResource({ uri });
      stop = () => client.unsubscribeResource({ uri });
    }
  } catch (error) {
    await stop?.();
    return { refused: true };
  }
  await METHODS["tools/call"](client, { name: touch, arguments: { uri: own } });
  const updates = await told();
  await stop();
  return { updated: [...new Set(updates.map(({ uri }) => uri))] };
}

// Has the tool change the list of tools, and says whether that was told.
async function changed(era, client, tape, params) {
  if (!client.getServerCapabilities()?.tools?.listChanged) return { changed: false };
  const told = notifications(tape, "notifications/tools/list_changed");
  const subscription = era === "modern" ? await client.listen({ toolsListChanged: true }) : undefined;
  await METHODS["tools/call"](client, params);
  const changes = await told();
  await subscription?.close();
  return { changed: changes.length > 0 };
}

// The parameters of these notifications from now on, once there is one.
function notifications(tape, method) {
  const before = tape.received.length;
  return async () => {
    const until = Date.now() + TOLD;
    for (;;) {
      const found = tape.received.slice(before).filter((message) => message.method === method);
      if (found.length > 0 || Date.now() > until) return found.map(({ params }) => params);
      await new Promise((resolve) => { setTimeout(resolve, 10); });
    }
  };
}

// From the tape: the SDK tells its caller of none that came in the same moment as the answer.
function notes(tape, request) {
  const token = request.params._meta.progressToken;
  return tape.received
    .filter((message) => message.method === "notifications/progress" && message.params.progressToken === token)
    .map(({ params: { progress, total, message } }) => ({ progress, total, message }));
}
