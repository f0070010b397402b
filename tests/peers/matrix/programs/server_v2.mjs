// The surface of the matrix, by the TypeScript SDK 2.x, which speaks both eras: `stdio`, or `http PORT`.
import { createServer } from "node:http";
import { McpServer, ResourceTemplate, completable, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { offer } from "./surface.mjs";

const make = () => offer({
  server: new McpServer({ name: "matrix-typescript-2", version: "1.0.0" }, { instructions: "The surface of the matrix." }),
  ResourceTemplate,
  completable,
  notify: (context, note) => context.mcpReq.notify(note),
  token: (context) => context.mcpReq._meta?.progressToken,
  signal: (context) => context.mcpReq.signal,
});

const [, , transport, port] = process.argv;
if (transport === "stdio") {
  serveStdio(make);
} else {
  createServer(toNodeHandler(createMcpHandler(make))).listen(Number(port), "127.0.0.1");
}
