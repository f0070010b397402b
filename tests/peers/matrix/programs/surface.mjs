// The surface that every server of the matrix offers, for both generations of the TypeScript SDK.
import { z } from "zod";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYAAAAAIAAeIhvDMAAAAASUVORK5CYII=";
// A hanging call ends by itself after so long: nothing of a test may stay.
const LONGEST = 30_000;
// A cancelled call notices within so long.
const NOTICE = 4_000;
// How hanging calls ended, by their key; one for the process, since there may be a server for each request.
const ended = new Map();
const text = (said) => ({ content: [{ type: "text", text: said }] });

// Registers everything; what the generations call differently comes with `sdk`.
export function offer(sdk) {
  const { server, ResourceTemplate, completable } = sdk;

  let grown;

  async function progress(context, step, total) {
    const progressToken = sdk.token(context);
    if (progressToken === undefined) return;
    const params = { progressToken, progress: step, total, message: `step ${step}` };
    await sdk.notify(context, { method: "notifications/progress", params });
  }

  server.registerTool("echo", { title: "Echo", description: "Gives back its text.", inputSchema: z.object({ text: z.string() }), annotations: { readOnlyHint: true } },
    async ({ text: said }) => text(said));
  server.registerTool("sum", { description: "Adds two numbers.", inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ total: z.number() }) },
    async ({ a, b }) => ({ ...text(JSON.stringify({ total: a + b })), structuredContent: { total: a + b } }));
  server.registerTool("pieces", { description: "One piece of each kind.", _meta: { "example.org/colour": "blue" } }, async () => ({
    content: [
      { type: "text", text: "a text", annotations: { audience: ["user"], priority: 0.5 } },
      { type: "image", data: PIXEL, mimeType: "image/png" },
      { type: "audio", data: "UklGRg==", mimeType: "audio/wav" },
      { type: "resource_link", uri: "matrix://static", name: "static", mimeType: "text/plain" },
      { type: "resource", resource: { uri: "matrix://item/1", mimeType: "text/plain", text: "item 1" } },
    ],
    _meta: { "example.org/kept": [1, 2.5] },
  }));
  server.registerTool("fail", { description: "Fails as tools fail." }, async () => {
    throw new Error("it failed on purpose");
  });
  server.registerTool("steps", { description: "Says how far it is.", inputSchema: z.object({ count: z.number() }) },
    async ({ count }, context) => {
      for (let step = 1; step <= count; step += 1) await progress(context, step, count);
      return text(`${count} steps`);
    });
  server.registerTool("ask", { description: "Asks why." }, async (context) => {
    const said = await sdk.ask(context, {
      message: "Why is that?",
      requestedSchema: { type: "object", properties: { reason: { type: "string", description: "In a few words." } }, required: ["reason"] },
    });
    return said.action ? text(`${said.action}: ${said.content?.reason}`) : said;
  });
  server.registerTool("hang", { description: "Runs until it is cancelled.", inputSchema: z.object({ key: z.string() }) },
    async ({ key }, context) => {
      const signal = sdk.signal(context);
      const how = await new Promise((resolve) => {
        const timer = setTimeout(() => resolve("by itself"), LONGEST);
        signal.addEventListener("abort", () => { clearTimeout(timer); resolve("cancelled"); });
        void progress(context, 1, 2);
      });
      ended.set(key, how);
      return text(how);
    });
  server.registerTool("ended", { description: "How a hanging call ended.", inputSchema: z.object({ key: z.string() }) },
    async ({ key }) => {
      const until = Date.now() + NOTICE;
      while (!ended.has(key) && Date.now() < until) await new Promise((resolve) => { setTimeout(resolve, 20); });
      return text(ended.get(key) ?? "running");
    });

  server.registerTool("touch", { description: "Says that a resource changed.", inputSchema: z.object({ uri: z.string() }) },
    async ({ uri }) => {
      await sdk.touch(server.server, uri);
      return text("touched");
    });
  sdk.takeSubscriptions(server.server);
  server.registerTool("grow", { description: "Adds a tool, or takes it away again." }, async () => {
    if (grown) grown = void grown.remove();
    else grown = server.registerTool("grown", { description: "A tool that came later." }, async () => text("here"));
    return text("done");
  });

  const guess = (value) => [`${value}one`, `${value}other`];
  server.registerPrompt("greet", { title: "Greeting", description: "Greets somebody.", argsSchema: { who: completable(z.string().describe("Whom to greet."), guess) } },
    ({ who }) => ({ description: "A greeting.", messages: [{ role: "user", content: { type: "text", text: `Hello, ${who}!` } }] }));

  const item = new ResourceTemplate("matrix://item/{id}", { list: undefined, complete: { id: guess } });
  server.registerResource("static", "matrix://static", { title: "Static", mimeType: "text/plain" },
    async (uri) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "the static text" }] }));
  server.registerResource("item", item, { mimeType: "text/plain" },
    async (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: `item ${id}`, _meta: { "example.org/id": id } }] }));
  return server;
}
