// The packed package, installed into an empty folder, and its types.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const place = mkdtempSync(join(tmpdir(), "recto-"));
after(() => rmSync(place, { recursive: true, force: true }));
const run = (program, args, cwd) => {
  try {
    return execFileSync(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"] }).toString();
  } catch (error) {
    throw new Error(`${program} ${args.join(" ")}\n${error.stdout}${error.stderr}`);
  }
};
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

const USE = `
  const store = await Store.open("sqlite:conversations.db");
  const conversation = await store.create("support", { counter: "approx" });
  await conversation.append({ role: "user", content: "hi" });
  const manager = new MessageArrayManagerImpl([{ role: "user", content: "x" }]);
  manager.execute({ operation: "CLEAR", keepSystemMessage: false });
  const { load } = await import("recto-context/wasm");
  const counted = (await load()).countTokens("hello world");
  console.log((await conversation.messages()).length, manager.rollback(0).state.messages.length, counted);
  store.close();`;
const CJS = `
  const { Store } = require("recto-context");
  const { MessageArrayManagerImpl } = require("recto-context/message-array");
  (async () => {${USE}})();`;
const ESM = `
  import { createRequire } from "node:module";
  import * as recto from "recto-context";
  import * as seeds from "recto-context/message-array";
  const { Store, RectoError } = recto;
  const { MessageArrayManagerImpl } = seeds;
  const require = createRequire(import.meta.url);
  // Both forms are one module, with the same names and classes.
  if (require("recto-context").RectoError !== RectoError) throw new Error("two classes RectoError");
  for (const [one, name] of [[recto, "recto-context"], [seeds, "recto-context/message-array"]]) {
    const missing = Object.keys(require(name)).filter((key) => !(key in one));
    if (missing.length) throw new Error("not exported: " + missing);
  }
  ${USE}`;

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const PUBLIC = Object.keys(manifest.exports)
  .filter((name) => !name.endsWith(".wasm") && !name.endsWith(".json"))
  .map((name) => name.replace(/^\./, "recto-context"));
const ENTRIES = `
  import { createRequire } from "node:module";
  const require = createRequire(import.meta.url);
  const names = ${JSON.stringify(PUBLIC)};
  for (const name of names) {
    const entry = await import(name);
    if (Object.keys(entry).length === 0) throw new Error(name + " exports nothing");
    if (name.endsWith("/wasm")) continue; // ESM only
    const missing = Object.keys(require(name)).filter((key) => !(key in entry));
    if (missing.length) throw new Error(name + " does not export " + missing);
  }
  console.log(names.length + " entry points");`;
const WITHOUT = `
  import { Store } from "recto-context";
  import { rectoMiddleware } from "recto-context/langchain";
  const store = await Store.open("memory:");
  await rectoMiddleware(store, { maxTokens: 10 }).catch((error) => console.log(error.message));`;
const WITH = `
  import { MemorySaver } from "@langchain/langgraph";
  import { Store } from "recto-context";
  import { prepareStep } from "recto-context/ai-sdk";
  import { rectoMiddleware } from "recto-context/langchain";
  import { RectoSaver } from "recto-context/langgraph";
  import { RectoSession } from "recto-context/openai-agents";
  const store = await Store.open("memory:");
  const message = { role: "user", content: "hi" };
  const { messages } = prepareStep({ maxTokens: 100 })({ messages: [message, message] });
  const { middleware } = await rectoMiddleware(store, { maxTokens: 100 });
  const session = await RectoSession.open("user-42", store);
  await session.addItems([{ type: "message", ...message }]);
  new RectoSaver(new MemorySaver(), store);
  console.log(messages.length, middleware.name, await session.getSessionId(), (await session.getItems()).length);`;

test("the packed package works in an empty folder", () => {
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", place], root));
  const files = packed.files.map((file) => file.path);
  assert(files.every((path) => /^(dist\/|recto\.[\w-]+\.node$|package\.json$|README\.md$)/.test(path)), files.join(" "));
  assert(files.some((path) => path.endsWith(".node")));
  const folder = join(place, "app");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{"name": "app", "private": true}');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", join(place, packed.filename)], folder);
  writeFileSync(join(folder, "use.cjs"), CJS);
  assert.equal(run(process.execPath, ["use.cjs"], folder), "1 1 2\n");
  rmSync(join(folder, "conversations.db"));
  writeFileSync(join(folder, "use.mjs"), ESM);
  assert.equal(run(process.execPath, ["use.mjs"], folder), "1 1 2\n");

  // Every entry point can be imported without a framework: frameworks are loaded when they are needed.
  writeFileSync(join(folder, "entries.mjs"), ENTRIES);
  assert.equal(run(process.execPath, ["entries.mjs"], folder), `${PUBLIC.length} entry points\n`);
  writeFileSync(join(folder, "without.mjs"), WITHOUT);
  assert.match(run(process.execPath, ["without.mjs"], folder), /recto-context\/langchain needs the package "langchain"/);

  const modules = join(root, "node_modules");
  for (const name of readdirSync(modules).filter((name) => !name.startsWith("."))) {
    symlinkSync(join(modules, name), join(folder, "node_modules", name));
  }
  writeFileSync(join(folder, "with.mjs"), WITH);
  assert.equal(run(process.execPath, ["with.mjs"], folder), "2 RectoContext user-42 1\n");
});

const CHECKED = ["test/types/store.ts", "test/types/message-array.ts"];
const STRICT = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--types", "node"];

// The types of Node are checked once.
const BUNDLER = ["--module", "esnext", "--moduleResolution", "bundler", "--skipLibCheck"];
for (const options of [["--module", "nodenext"], BUNDLER]) {
  test(`programs in TypeScript are checked with ${options.join(" ")}`, () => {
    run(process.execPath, [tsc, ...STRICT, ...options, ...CHECKED], root);
  });
}

test("a bundler for browsers takes the WebAssembly functions without a module of Node", async () => {
  const { rolldown } = await import("rolldown");
  const logs = [];
  const input = join(root, "dist/wasm/wasm/index.js");
  const bundle = await rolldown({ input, platform: "browser", onLog: (_, log) => logs.push(log.message) });
  const { output } = await bundle.generate({ format: "esm", minify: true });
  assert.deepEqual(logs, []);
  assert.deepEqual(output.flatMap(({ imports = [], dynamicImports = [] }) => [...imports, ...dynamicImports]), []);
  await bundle.close();
});
