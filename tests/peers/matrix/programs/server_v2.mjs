// The surface of the matrix, by the TypeScript SDK 2.x, which speaks both eras: `stdio`, or `http PORT`.
import { createServer } from "node:http";
import { McpServer, ResourceTemplate, completable, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { offer } from "./surface.mjs";

const make = () => offer({
  server: new McpServer({ name: "matrix-typescript-2", version: "1.0.0" }, { capabilities: { resources: { subscribe: true } }, instructions: "The surface of the matrix." }),
  ResourceTemplate,
  completable,
  notify: (context, note) => context.mcpReq.notify(note),
  token: (context) => context.mcpReq._meta?.progressToken,
  signal: (context) => context.mcpReq.signal,
  touch: (server, uri) => handler ? handler.notify.resourceUpdated(uri) : server.sendResourceUpdated({ uri }),
  // Of the handshake era; a server that lives for one request could tell nobody.
  takeSubscriptions: (server) => {
    if (handler) return;
    server.setRequestHandler("resources/subscribe", async () => ({}));
    server.setRequestHandler("resources/unsubscribe", async () => ({}));
  },
  // An answer, or the result that asks for it; in the handshake era the SDK asks by itself.
  ask: (context, params) => context.mcpReq.inputResponses?.why
    ?? inputRequired({ inputRequests: { why: inputRequired.elicit(params) } }),
});

const [, , transport, port] = process.argv;
// Over HTTP each request has a server of its own; those who listen are the handler's.
let handler;
if (transport === "stdio") {
  serveStdio(make);
} else {
  handler = createMcpHandler(make);
  createServer(toNodeHandler(handler)).listen(Number(port), "127.0.0.1");
}
