// Functions about lists of messages: the native ones, and the same ones in WebAssembly.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { BudgetTooSmall, countTokens, fit, InvalidRequest, repair } from "recto-context";
import * as wasm from "recto-context/wasm";

const file = fileURLToPath(new URL("../dist/wasm/recto.wasm", import.meta.url));
const PLACES = [
  { name: "native", lists: { fit, repair, countTokens }, errors: { BudgetTooSmall, InvalidRequest } },
  { name: "wasm", lists: await wasm.load(), errors: wasm },
];

const call = { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] };
const result = { role: "tool", tool_call_id: "c", content: "ok" };
const system = { role: "system", content: "Be brief." };
const question = { role: "user", content: "What is in the log? ".repeat(40) };
const answer = { role: "assistant", content: "Nothing." };
const chat = { format: "openai-chat" };

for (const { name, lists, errors } of PLACES) {
  test(`${name}: a list that fits is returned with the caller's objects`, () => {
    const list = [system, question, call, result, answer];
    const fitted = lists.fit(list, 10_000, chat);
    assert(fitted.messages.every((message, at) => message === list[at]));
    assert.deepEqual([fitted.positions, fitted.dropped, fitted.repairs], [[0, 1, 2, 3, 4], [], []]);
    assert.equal(fitted.tokens, fitted.tokensBefore);
    assert.equal(fitted.tokens, lists.countTokens(list, chat));
  });

  test(`${name}: a longer list keeps the newest messages, and calls with their results`, () => {
    const list = [system, question, call, result, answer];
    const fitted = lists.fit(list, 60, chat);
    assert.deepEqual(fitted.positions, [0, 2, 3, 4]);
    assert.deepEqual(fitted.dropped, [1]);
    assert(fitted.tokens <= 60 && fitted.tokensBefore > 60);
    const { needed } = thrown(() => lists.fit(list, 2, chat), errors.BudgetTooSmall);
    assert(lists.fit(list, needed, chat).tokens <= needed);
  });

  test(`${name}: a call without a result gets one`, () => {
    const list = [question, call, { role: "user", content: "Well?" }];
    const { messages, positions, repairs } = lists.repair(list, "openai-chat", chat);
    assert.deepEqual(positions, [0, 1, undefined, 2]);
    assert.deepEqual([messages[2].role, messages[2].tool_call_id], ["tool", "c"]);
    assert(repairs.some((repair) => repair.rule === "answered_calls" && repair.index === 1));
    assert.deepEqual(lists.repair(messages, "openai-chat", chat).positions, [0, 1, 2, 3]);
  });

  test(`${name}: tokens are counted exactly`, () => {
    assert.equal(lists.countTokens("hello world"), 2);
    assert.equal(lists.countTokens("hello world", { counter: "cl100k_base" }), 2);
    assert.equal(lists.countTokens("東京"), lists.countTokens("東京の天気") - lists.countTokens("の天気"));
    assert.equal(lists.countTokens(""), 0);
    assert.equal(lists.countTokens({ role: "user", content: "hi" }, { counter: "approx" }), 4);
  });

  test(`${name}: wrong requests are refused with their field`, () => {
    const refused = (run) => thrown(run, errors.InvalidRequest);
    assert.equal(refused(() => lists.fit([system], "many")).field, "maxTokens");
    assert.equal(refused(() => lists.fit([system, 7], 100)).field, "fit[1]");
    assert.equal(refused(() => lists.fit("no list", 100)).field, "messages");
    assert.equal(refused(() => lists.fit([system], 100, { counter: "mine" })).field, "counter");
    assert.equal(refused(() => lists.fit([system], 100, { targetTokens: 200 })).field, "targetTokens");
    assert.equal(refused(() => lists.repair([system], "nobody")).field, "for");
    assert.equal(refused(() => lists.fit([{ role: "user", content: () => 1 }], 9)).field, "fit[0].content");
  });

  test(`${name}: messages of another format are refused with the format to give`, () => {
    for (const [field, run] of [
      ["fit", (list, options) => lists.fit(list, 10_000, options)],
      ["repair", (list, options) => lists.repair(list, "openai-chat", options)],
      ["countTokens", (list, options) => lists.countTokens(list, options)],
    ]) {
      for (const message of [{ ...call, content: "Let me look." }, call, result]) {
        const error = thrown(() => run([question, message]), errors.InvalidRequest);
        assert.deepEqual([error.field, error.details], [`${field}[1]`, chat]);
        run([question, message], chat);
      }
    }
  });

  test(`${name}: texts of any size and script come through`, () => {
    for (const text of ["\u0000\ud83d\ude00\u2028", "ß".repeat(3_000_000)]) {
      const list = [{ role: "user", content: text }, { role: "user", content: "Ω" }];
      assert.deepEqual(lists.fit(list, 5, { counter: "approx" }).positions, [1]);
    }
  });
}

test("wasm: the module needs nothing but WebAssembly, and is loaded from every kind of source", async () => {
  const bytes = readFileSync(file);
  const module = await WebAssembly.compile(bytes);
  assert.deepEqual(WebAssembly.Module.imports(module), []);
  const response = () => new Response(bytes);
  for (const source of [bytes, module, response(), new URL(`file://${file}`), `file://${file}`]) {
    assert.equal((await wasm.load(source)).countTokens("hello world"), 2);
  }
  await assert.rejects(wasm.load(new Response("", { status: 404 })), /status 404/);
});

test("wasm: the module without exact counters is smaller, and counts approximately", async () => {
  const approx = readFileSync(new URL("../dist/wasm/approx.wasm", import.meta.url));
  // It has no vocabularies, which have about 5 MB.
  assert(approx.length < readFileSync(file).length - 4_000_000);
  const lists = await wasm.load(approx);
  const list = [question, answer];
  const counter = "approx";
  assert.equal(lists.countTokens(list, { ...chat, counter }), countTokens(list, { ...chat, counter }));
  assert.deepEqual(lists.fit(list, 20, { ...chat, counter }).positions, [1]);
  assert.equal(thrown(() => lists.countTokens("hello"), wasm.InvalidRequest).field, "counter");
});

test("wasm: no import of the compiled files names a module of Node", () => {
  for (const path of ["wasm/index.js", "lists.js", "json.js", "errors.js"]) {
    const text = readFileSync(new URL(`../dist/wasm/${path}`, import.meta.url), "utf8");
    const code = text.replaceAll(/\/\*.*?\*\//gs, "");
    const imported = [...code.matchAll(/(?:from|import)\s*\(?"([^"]+)"/g)].map((found) => found[1]);
    assert.deepEqual(imported.filter((name) => !name.startsWith("./") && !name.startsWith("../")), []);
    assert(!/\b(process|Buffer|require|__dirname)\b/.test(code.replaceAll(/\/\/.*/g, "")), path);
  }
});

function thrown(run, kind) {
  try {
    run();
  } catch (error) {
    assert(error instanceof kind, String(error));
    return error;
  }
  throw new Error("nothing was thrown");
}
