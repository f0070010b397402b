// Makes a component of a JavaScript policy: build.mjs SOURCE WIT-DIRECTORY WORLD OUT [http]
// With `http` the component imports wasi:http, which no plugin gets.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [source, witPath, worldName, out, http] = process.argv.slice(2);
// The package is where the parts are installed, which is the working directory and not beside this file.
const home = createRequire(join(process.cwd(), "package.json"));
const entry = join(home.resolve.paths("x")[0], "@bytecodealliance/componentize-js/src/componentize.js");
const { componentize } = await import(pathToFileURL(entry).href);
const { component } = await componentize(await readFile(source, "utf8"), {
  witPath,
  worldName,
  disableFeatures: http ? [] : ["http", "fetch-event"],
});
await writeFile(out, component);
