// The examples of the documentation, run as they are.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A folder in which this package and the frameworks of its tests can be imported. */
function folder() {
  const place = mkdtempSync(join(tmpdir(), "recto-"));
  const modules = join(root, "node_modules");
  mkdirSync(join(place, "node_modules"));
  for (const name of readdirSync(modules).filter((name) => !name.startsWith("."))) {
    symlinkSync(join(modules, name), join(place, "node_modules", name));
  }
  symlinkSync(root, join(place, "node_modules", "recto-context"));
  return place;
}

for (const page of ["README.md", "../README.md", "../docs/node.md", "../docs/typescript-seeds.md"]) {
  const text = readFileSync(join(root, page), "utf8");
  const examples = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((found) => found[1]);
  for (const [at, example] of examples.entries()) {
    test(`example ${at + 1} of ${page} runs`, () => {
      const place = folder();
      writeFileSync(join(place, "example.mjs"), example);
      execFileSync(process.execPath, ["example.mjs"], { cwd: place, stdio: ["ignore", "pipe", "pipe"] });
      rmSync(place, { recursive: true });
    });
  }
}

const SCRIPTED = `
import { FakeListChatModel } from "@langchain/core/utils/testing";
class Scripted extends FakeListChatModel {
  bindTools() { return this; }
}
const model = new Scripted({ responses: ["The gateway times out."] });
const tools = [];
const messages = [{ role: "user", content: "Why does checkout fail?" }];
`;
/** For each page of a framework: what its first example takes for granted, and what holds after it. */
const PAGES = {
  "ai-sdk.md": [
    `import { MockLanguageModelV3 } from "ai/test";
    const content = [{ type: "text", text: "The gateway times out." }];
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const answer = { content, finishReason: { unified: "stop" }, usage, warnings: [] };
    const model = new MockLanguageModelV3({ doGenerate: async () => answer });
    const tools = {};
    const messages = [{ role: "user", content: "Why does checkout fail?" }];`,
    'if (result.text !== "The gateway times out.") throw result;',
  ],
  "node-langgraph.md": [SCRIPTED, "if ((await conversation.messages()).length !== 2) throw conversation;"],
  "node-langchain.md": [SCRIPTED, 'if (!(await context.conversation("t1").messages()).length) throw context;'],
  "node-openai-agents.md": [
    `import { Agent, setTracingDisabled } from "@openai/agents-core";
    import { assistantMessage, ScriptedModel } from "@openai/agents-core/testing";
    setTracingDisabled(true);
    const agent = new Agent({ name: "a", model: new ScriptedModel([[assistantMessage("1")]]) });`,
    "if (!(await branch.getItems()).length) throw branch;",
  ],
};
for (const [page, [before, after]] of Object.entries(PAGES)) {
  test(`the first example of ${page} runs`, () => {
    const place = folder();
    const text = readFileSync(join(root, "../docs", page), "utf8");
    // The example has no types, so it is JavaScript too. The tests install the core of the SDK only.
    const example = /^```ts\n(.*?)^```$/ms.exec(text)[1].replace('"@openai/agents"', '"@openai/agents-core"');
    writeFileSync(join(place, "example.mjs"), `${before}\n${example}\n${after}`);
    execFileSync(process.execPath, ["example.mjs"], { cwd: place, stdio: ["ignore", "pipe", "pipe"] });
    rmSync(place, { recursive: true });
  });
}

/** What the server of docs/ai-sdk.md takes for granted, and a request to it. */
const SERVER = [
  `import { MockLanguageModelV4 } from "ai/test";
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const chunks = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "The gateway times out." },
    { type: "text-end", id: "t" },
    { type: "finish", finishReason: { unified: "stop" }, usage },
  ];
  const model = new MockLanguageModelV4({ doStream: async () => ({ stream: ReadableStream.from(chunks) }) });`,
  `const question = { id: "q", role: "user", parts: [{ type: "text", text: "Why does checkout fail?" }] };
  const body = JSON.stringify({ id: "user/42", messages: [question] });
  const response = await POST(new Request("http://localhost/chat", { method: "POST", body }));
  if (!(await response.text()).includes("The gateway times out.")) throw response;
  const saved = JSON.stringify(await (await store.chat("user/42")).load());
  if (!saved.includes("Why does checkout fail?") || !saved.includes("The gateway times out.")) throw saved;`,
];
const isOld = Number(process.versions.node.split(".")[0]) < 22;
test("the chat of ai-sdk.md runs with version 7", { skip: isOld && "needs Node 22" }, () => {
  const place = folder();
  rmSync(join(place, "node_modules", "ai"));
  symlinkSync(join(root, "node_modules", "ai7"), join(place, "node_modules", "ai"));
  const text = readFileSync(join(root, "../docs/ai-sdk.md"), "utf8");
  const [, example] = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map((found) => found[1]);
  const [before, after] = SERVER;
  const options = { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } };
  writeFileSync(join(place, "example.mjs"), ts.transpileModule(`${before}\n${example}\n${after}`, options).outputText);
  execFileSync(process.execPath, ["example.mjs"], { cwd: place, stdio: ["ignore", "pipe", "pipe"] });
  rmSync(place, { recursive: true });
});

test("each example of the pages of frameworks is run by a test", () => {
  for (const page of Object.keys(PAGES)) {
    const examples = [...readFileSync(join(root, "../docs", page), "utf8").matchAll(/^```ts$/gm)];
    assert.equal(examples.length, page === "ai-sdk.md" ? 2 : 1, page);
  }
});

const examples = join(root, "../examples/node");
const pages = readdirSync(join(root, "../docs")).map((page) => readFileSync(join(root, "../docs", page), "utf8"));
for (const file of readdirSync(examples)) {
  test(`${file} prints what its page shows`, () => {
    const place = folder();
    writeFileSync(join(place, file), readFileSync(join(examples, file)));
    const printed = execFileSync(process.execPath, [file], { cwd: place, stdio: ["ignore", "pipe", "pipe"] }).toString();
    const shown = pages.flatMap((page) => [...page.matchAll(new RegExp(`\\$ node examples/node/${file}\n(.*?)\`\`\``, "gs"))]);
    assert.deepEqual(shown.map((found) => found[1]), [printed]);
    rmSync(place, { recursive: true });
  });
}
