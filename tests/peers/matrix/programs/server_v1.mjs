// The surface of the matrix, by the TypeScript SDK 1.x: `server_v1.mjs stdio`, or `http PORT`, or `sse PORT`.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { ElicitResultSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { offer } from "./surface.mjs";

const make = () => offer({
  server: new McpServer({ name: "matrix-typescript-1", version: "1.0.0" }, { capabilities: { resources: { subscribe: true } }, instructions: "The surface of the matrix." }),
  ResourceTemplate,
  completable,
  notify: (extra, note) => extra.sendNotification(note),
  token: (extra) => extra._meta?.progressToken,
  signal: (extra) => extra.signal,
  touch: (server, uri) => server.sendResourceUpdated({ uri }),
  // A client that was told of what it did not subscribe to would be another matter: there is one resource to touch.
  takeSubscriptions: (server) => {
    server.setRequestHandler(SubscribeRequestSchema, async () => ({}));
    server.setRequestHandler(UnsubscribeRequestSchema, async () => ({}));
  },
  ask: (extra, params) => extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema),
});

const [, , transport, port] = process.argv;
if (transport === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const serve = transport === "sse" ? sse : http;
  createServer((request, response) => {
    serve(request, response, sessions).catch((error) => response.destroy(error));
  }).listen(Number(port), "127.0.0.1");
}

async function http(request, response, sessions) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known.handleRequest(request, response);
  const session = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, session),
  });
  session.onclose = () => sessions.delete(session.sessionId);
  await make().connect(session);
  return session.handleRequest(request, response);
}

async function sse(request, response, sessions) {
  const url = new URL(request.url, "http://127.0.0.1");
  if (request.method === "GET" && url.pathname === "/sse") {
    const session = new SSEServerTransport("/message", response);
    sessions.set(session.sessionId, session);
    session.onclose = () => sessions.delete(session.sessionId);
    return make().connect(session);
  }
  const session = sessions.get(url.searchParams.get("sessionId"));
  if (!session) return response.writeHead(404).end();
  return session.handlePostMessage(request, response);
}
