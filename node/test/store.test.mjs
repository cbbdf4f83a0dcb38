// The store and its conversations.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import vm from "node:vm";
import { Worker } from "node:worker_threads";

import * as recto from "recto-context";

const { Store } = recto;
const user = (content) => ({ role: "user", content });
const place = mkdtempSync(join(tmpdir(), "recto-"));
after(() => rmSync(place, { recursive: true, force: true }));

test("a request has the response of recto exec", async () => {
  const store = await Store.open("memory:");
  const created = await store.request({ create: "a", settings: { counter: "approx" } });
  assert.equal(created.conversation, "a");
  assert.equal(created.version, 0);
  const applied = store.requestSync({ conversation: "a", op: { operation: "APPEND", messages: [user("hi")] } });
  assert.equal(applied.version, 1);
  assert.deepEqual(applied.added, [0]);
  const text = await store.requestJson('{"conversation": "a", "ask": {"last": 1}}');
  assert.equal(text, store.requestJsonSync('{"conversation": "a", "ask": {"last": 1}}'));
  assert.deepEqual(JSON.parse(text).messages[0].message, user("hi"));
});

test("the version of the API and the fields decide which rules apply", async () => {
  const store = await Store.open("memory:");
  const conversation = await store.create("cited", { counter: "approx" });
  const cited = { type: "text", text: "a", citations: [{ type: "char_location" }] };
  await conversation.append({ role: "user", content: [cited], metadata: { source: { provider: "anthropic" } } });
  for (const [apiVersion, rules] of [[undefined, []], ["2026-10-21", ["citations_from_the_assistant"]]]) {
    const findings = await conversation.lint("anthropic", { apiVersion });
    assert.deepEqual(findings.map((finding) => finding.rule), rules);
    const { repairs } = await conversation.render("anthropic", { apiVersion });
    assert.deepEqual(repairs.map((repair) => repair.rule), rules);
  }
  await conversation.append({ role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] });
  await conversation.append({ role: "tool", content: [{ type: "tool_result", tool_use_id: "c", content: "r" }] });
  const enabled = { thinking: { type: "enabled", budget_tokens: 1024 } };
  for (const [fields, rules] of [[undefined, []], [enabled, ["thinking_of_the_last_calls"]]]) {
    const findings = await conversation.lint("anthropic", { fields });
    assert.deepEqual(findings.map((finding) => finding.rule), rules);
  }
});

test("messages keep their bytes", async () => {
  const store = await Store.open("memory:");
  const message = '{"content": "x", "role":"user", "n": 12345678901234567890.50, "id": "\\u00e9"}';
  await store.requestJson(`{"create": "a", "messages": [${message}]}`);
  assert((await store.requestJson('{"conversation": "a", "show": true}')).includes(message));
});

test("methods of a conversation", async () => {
  const store = await Store.open("memory:");
  const conversation = await store.create("support", { counter: "approx", messages: [{ role: "system", content: "Be brief." }] });
  assert.equal((await conversation.append(user("one"))).version, 1);
  assert.deepEqual((await conversation.append([user("two"), user("three")], { description: "two more" })).added, [2, 3]);
  assert.deepEqual((await conversation.messages()).map((m) => m.content), ["Be brief.", "one", "two", "three"]);
  assert.deepEqual((await conversation.hide([1])).hidden, [1]);
  assert.equal((await conversation.messages({ at: 2 })).length, 4);
  assert.deepEqual((await conversation.diff(2, 3)).hidden.indices, [1]);
  assert.deepEqual((await conversation.blame(1)).map((step) => step.effect), ["added", "hidden"]);
  assert.deepEqual((await conversation.undo()).shown, [1]);
  assert.deepEqual((await conversation.redo()).hidden, [1]);
  assert.deepEqual((await conversation.restore([1])).shown, [1]);
  await conversation.mark([1]);
  await assert.rejects(conversation.hide([1]), recto.PinnedEntry);
  await conversation.unmark([1]);
  assert((await conversation.hide([1, 2], { summary: user("both") })).added.length === 1);
  await conversation.undo();
  await conversation.replace(0, { role: "system", content: "Be kind." });
  await conversation.insert(1, user("zero"));
  await conversation.rollback({ version: 2 });
  await conversation.arrange([3, 0]);
  await conversation.truncate({ keepLast: 1 });
  await conversation.filter({ roles: ["system"] });
  await conversation.clear({ keepSystemMessage: false });
  assert.equal((await conversation.stats()).currentBatchMessages, 0);
  await conversation.rollback({ batch: 0 });
  assert.deepEqual((await conversation.query({ role: "user", last: 1 }))[0].message, user("three"));
  assert.equal(await conversation.count({ role: "user" }), 3);
  assert.deepEqual((await conversation.entries([1])).map((entry) => entry.index), [1]);
  const [newest] = await conversation.versions({ limit: 1 });
  assert.equal(newest.version, await conversation.version());
  assert.equal((await conversation.info()).counter, "approx");
  const fork = await conversation.fork("fork", { at: 1 });
  assert.equal((await fork.messages()).length, 2);
  assert.deepEqual((await store.list()).map((info) => info.name), ["fork", "support"]);
  const names = [];
  for await (const info of store.conversations()) names.push(info.name);
  assert.deepEqual(names, ["fork", "support"]);
  assert.equal((await conversation.render("anthropic", { model: "claude-sonnet-4-5" })).request.messages.length > 0, true);
  assert.deepEqual(await conversation.lint("openai-chat"), []);
  assert.equal((await conversation.tokens({ largest: 1 })).largest.length, 1);
  assert.equal((await conversation.tokenCheck()).limit, null);
  assert.equal((await conversation.state()).totalMessageCount, 4);
  assert.equal((await conversation.snapshot(0)).batchIndex, 0);
  assert.equal((await conversation.markMap()).currentBatch, 0);
  assert.deepEqual(await conversation.marks(), []);
  assert((await conversation.setTools([{ name: "read", description: "Reads." }])).toolsChanged);
  assert.deepEqual(await conversation.tools(), [{ name: "read", description: "Reads." }]);
  assert.equal((await conversation.changeSettings({ tokenLimit: 9 })).tokenLimit, 9);
  assert.equal((await conversation.settings()).tokenLimit, 9);
  assert((await conversation.export("openai-chat")).data.length > 0);
  assert((await conversation.verify()).sound);
  assert((await store.verify()).sound);
  assert((await conversation.preview({ operation: "CLEAR" })).dryRun);
  assert((await conversation.fit(40)).stats.tokens <= 40);
  assert((await store.search("three")).length > 0);
  assert.equal((await conversation.erase([2]))[0].index, 2);
  await conversation.prune({ keepVersions: 1 });
  const renamed = await conversation.rename("renamed");
  assert.equal(renamed.name, "renamed");
  const imported = await store.import("chat", [{ role: "user", content: "hi" }], { format: "openai-chat" });
  assert.equal(imported.conversation, "chat");
  await renamed.remove();
  await assert.rejects(renamed.messages(), recto.ConversationNotFound);
  assert.equal((await store.conversationOrCreate("chat")).name, "chat");
  assert(recto.schema().requests.length > 30);
});

test("errors have a class, a code, a field and details", async () => {
  const store = await Store.open("memory:");
  const conversation = await store.create("support", { counter: "approx" });
  await conversation.append(user("one"));
  const conflict = await conversation.append(user("two"), { expectedVersion: 0 }).catch((error) => error);
  assert(conflict instanceof recto.VersionConflict && conflict instanceof recto.RectoError && conflict instanceof Error);
  assert.equal(conflict.name, "VersionConflict");
  assert.equal(conflict.code, "version_conflict");
  assert.equal(conflict.field, "expectedVersion");
  assert.equal(conflict.currentVersion, 1);
  await assert.rejects(conversation.apply({ operation: "TRUNCATE", keeplast: 2 }), (error) => {
    assert(error instanceof recto.InvalidRequest);
    assert.equal(error.field, "keeplast");
    return error.message.includes("keepLast");
  });
  const small = await conversation.fit(1).catch((error) => error);
  assert(small instanceof recto.BudgetTooSmall);
  assert.equal(small.needed, 4);
  await assert.rejects(conversation.redo(), recto.NothingToRevert);
  await assert.rejects(conversation.messages({ at: 99 }), recto.VersionNotFound);
  await assert.rejects(conversation.snapshot(9), recto.BatchNotFound);
  await assert.rejects(conversation.snapshot(9), recto.NotFound);
  await assert.rejects(store.create("support"), recto.ConversationExists);
  await assert.rejects(Store.open("nowhere"), recto.InvalidRequest);
  assert.throws(() => Store.openSync("nowhere"), recto.InvalidRequest);
  await assert.rejects(Store.open(`sqlite:${place}/no/such/folder.db`), recto.StorageError);
  assert.equal((await conversation.stats()).totalMessages, 1);
});

class Point {
  x = 1;
}
const loop = {};
loop.loop = loop;
let deep = [];
for (let depth = 0; depth < 100_000; depth++) deep = [deep];

const WRONG = [
  [{ create: () => 1 }, "create"],
  [{ create: Symbol("a") }, "create"],
  [{ create: 7n }, "create"],
  [{ create: 7 }, "create"],
  [{ create: "a", messages: [{ role: "user", content: Buffer.from("x"), n: NaN }] }, "messages[0].n"],
  [{ create: "a", messages: [{ role: "user", content: new Map() }] }, "messages[0].content"],
  [{ create: "a", messages: [{ role: "user", content: "x", point: new Point() }] }, "messages[0].point"],
  [{ create: "a", messages: [undefined] }, "messages[0]"],
  [{ create: "a", settings: { mediaTokens: Infinity } }, "settings.mediaTokens"],
  [{ list: { limit: -1 } }, "list.limit"],
  [{ list: { limit: true } }, "list.limit"],
  [{ list: { limit: 1.5 } }, "list.limit"],
  [{ conversation: "a", diff: { from: "1", to: 2 } }, "diff.from"],
];

for (const [request, field] of WRONG) {
  test(`a wrong value is an error with its field: ${field}`, async () => {
    const store = await Store.open("memory:");
    const isRefused = (error) => error instanceof recto.RectoError && error.field === field;
    await assert.rejects(store.request(request), isRefused);
    assert.throws(() => store.requestSync(request), isRefused);
    assert.deepEqual(await store.list(), []);
  });
}

test("options that are not an object are refused with the name of the argument", async () => {
  const store = await Store.open("memory:");
  const talk = await store.create("talk", { counter: "approx", messages: [user("one")] });
  const before = {
    append: [user("two")], insert: [0, user("two")], replace: [0, user("two")], hide: [[0]], restore: [[0]], arrange: [[0]],
    truncate: [{ keepLast: 0 }], filter: [{ roles: [] }], clear: [], fit: [1], mark: [[0], "a"], unmark: [[0], "a"],
    rollback: [{ version: 0 }], messages: [], entries: [[0]], marks: [], markMap: [], tools: [], tokens: [], state: [],
    export: ["json"], fork: ["other"],
  };
  const refused = { name: "TypeError", message: "options must be an object, not null" };
  for (const [method, args] of Object.entries(before)) await assert.rejects(talk[method](...args, null), refused, method);
  await assert.rejects(store.create("other", null), refused);
  await assert.rejects(talk.rollback(), { name: "TypeError", message: "target must be an object, not undefined" });
  assert.equal(await talk.version(), 0);
  assert.equal((await store.list()).length, 1);
});

test("hostile requests are errors", async () => {
  const store = await Store.open("memory:");
  for (const request of [loop, deep, null, undefined, 7, "x", [], {}, { create: loop }, { create: "a", data: deep }]) {
    await assert.rejects(store.request(request), recto.RectoError);
    assert.throws(() => store.requestSync(request), recto.RectoError);
  }
  for (const text of ["", "{", "[".repeat(200_000), "{}x", "null", '{"create": "\\ud800"}']) {
    await assert.rejects(store.requestJson(text), recto.RectoError, text.slice(0, 20));
  }
  for (const value of [7, null, undefined, {}]) {
    await assert.rejects(store.requestJson(value), TypeError);
    assert.throws(() => store.requestJsonSync(value), /text must be a string/);
    await assert.rejects(Store.open(value), /address must be a string/);
  }
  await assert.rejects(Store.open("memory:", { tenant: 7 }), /tenant must be a string/);
  await assert.rejects(Store.open("memory:", { search: "yes" }), /search must be a boolean/);
  await assert.rejects(Store.open("memory:", { serch: true }), (error) => error.field === "serch");
  const surrogate = await store.create("s", { counter: "approx" });
  await surrogate.append(user("\ud800")).catch((error) => assert(error instanceof recto.RectoError, error));
  assert.deepEqual((await store.list()).map((info) => info.name), ["s"]);
});

test("objects of another realm and objects with toJSON are values", async () => {
  const store = await Store.open("memory:");
  const message = vm.runInNewContext('({ role: "user", content: [{ type: "text", text: "x" }] })');
  const dated = { role: "user", content: "y", metadata: { at: new Date(0), nothing: undefined } };
  const conversation = await store.create("a", { messages: [message, dated] });
  const [first, second] = await conversation.messages();
  assert.equal(first.content[0].text, "x");
  assert.deepEqual(second.metadata, { at: "1970-01-01T00:00:00.000Z" });
});

test("many requests run at the same time", async () => {
  for (const address of ["memory:", `sqlite:${place}/many.db`]) {
    const store = await Store.open(address);
    const conversations = await Promise.all(Array.from({ length: 8 }, (_, n) => store.create(`t${n}`, { counter: "approx" })));
    await Promise.all(Array.from({ length: 400 }, (_, n) => conversations[n % 8].append(user(`${n}`))));
    for (const conversation of conversations) {
      assert.equal(await conversation.version(), 50);
      assert.equal((await conversation.messages()).length, 50);
    }
    // One of the writers with the same expected version succeeds.
    const racing = Array.from({ length: 20 }, () => conversations[0].append(user("r"), { expectedVersion: 50 }));
    const settled = await Promise.allSettled(racing);
    assert.equal(settled.filter((one) => one.status === "fulfilled").length, 1);
    const refused = settled.find((one) => one.status === "rejected");
    assert(refused.reason instanceof recto.VersionConflict);
    store.close();
  }
});

test("an idempotency key is not applied twice", async () => {
  const store = await Store.open("memory:");
  const conversation = await store.create("support", { counter: "approx" });
  assert.equal((await conversation.append(user("one"), { idempotencyKey: "k" })).version, 1);
  assert.equal((await conversation.append(user("one"), { idempotencyKey: "k" })).version, 1);
  assert.equal((await conversation.append(user("two"), { return: ["state"] })).state.totalMessageCount, 2);
});

test("a closed store completes what runs and refuses other requests", async () => {
  const store = await Store.open(`sqlite:${place}/closed.db`);
  const conversation = await store.create("a", { counter: "approx" });
  const running = Array.from({ length: 20 }, () => conversation.append(user("one")));
  store.close();
  store.close();
  assert(store.closed);
  assert.equal((await Promise.all(running)).length, 20);
  await assert.rejects(store.list(), recto.StorageError);
  assert.throws(() => store.requestSync({ list: true }), /closed/);
});

test("a file is shared between stores, and kept", async () => {
  const address = `sqlite:${place}/shared.db`;
  const first = await Store.open(address);
  const second = Store.openSync(address);
  await (await first.create("support")).append(user("one"));
  assert.deepEqual(await second.conversation("support").messages(), [user("one")]);
  assert.equal((await second.search("one"))[0].conversation, "support");
  first.close();
  second.close();
  const again = await Store.open(address);
  assert.deepEqual(await again.conversation("support").messages(), [user("one")]);
  again.close();
});

test("tenants do not see each other", async () => {
  const address = `sqlite:${place}/tenants.db`;
  const one = await Store.open(address, { tenant: "one" });
  const two = await Store.open(address, { tenant: "two" });
  await one.create("support");
  assert.deepEqual(await two.list(), []);
  one.close();
  two.close();
});

test("a password is not printed", async () => {
  const { inspect } = await import("node:util");
  const store = await Store.open("memory:");
  assert(!inspect(store).includes("memory:"));
  assert.equal(store.address, "memory:");
});

test("worker threads use stores of their own", async () => {
  const address = `sqlite:${place}/workers.db`;
  const store = await Store.open(address);
  const conversation = await store.create("support", { counter: "approx" });
  const code = `
    const { Store } = require("recto-context");
    const { workerData, parentPort } = require("node:worker_threads");
    (async () => {
      const store = await Store.open(workerData);
      for (let n = 0; n < 10; n++) await store.conversation("support").append({ role: "user", content: "w" });
      store.requestSync({ list: true });
      parentPort.postMessage("done");
    })();`;
  const ended = Array.from({ length: 3 }, () => {
    const worker = new Worker(code, { eval: true, workerData: address });
    return new Promise((resolve, reject) => worker.on("error", reject).on("exit", resolve));
  });
  assert.deepEqual(await Promise.all(ended), [0, 0, 0]);
  assert.equal(await conversation.version(), 30);
  store.close();
});

test("a process ends with open stores and running requests", () => {
  const code = `
    const { Store } = require("recto-context");
    const store = Store.openSync("sqlite:${place}/exit.db");
    store.requestSync({ create: "a" });
    for (let n = 0; n < 50; n++) store.conversation("a").append({ role: "user", content: "x" });
    console.log("printed");
    process.exit(0);`;
  const printed = execFileSync(process.execPath, ["-e", code], { cwd: import.meta.dirname ?? new URL(".", import.meta.url).pathname });
  assert.equal(printed.toString(), "printed\n");
});

test("memory stays flat over many calls", async () => {
  const code = `
    const { Store } = require("recto-context");
    const store = Store.openSync("memory:");
    store.requestSync({ create: "a", settings: { counter: "approx" } });
    const call = (count) => { for (let n = 0; n < count; n++) store.requestSync({ conversation: "a", stats: true }); };
    call(5000); gc();
    const before = process.memoryUsage().rss;
    call(30000); gc();
    const stores = 200;
    for (let n = 0; n < stores; n++) Store.openSync("memory:");
    console.log((process.memoryUsage().rss - before) / 1e6);`;
  const cwd = new URL(".", import.meta.url).pathname;
  const printed = execFileSync(process.execPath, ["--expose-gc", "-e", code], { cwd });
  assert(Number(printed.toString()) < 30, `${printed} MB more`);
});

test("the largest accepted message is an option", async () => {
  const store = await Store.open("memory:", { maxMessageBytes: 100 });
  const conversation = await store.create("support", { counter: "approx" });
  await conversation.append(user("short"));
  await assert.rejects(conversation.append(user("x".repeat(100))), { code: "too_large" });
  assert.equal(await conversation.version(), 1);
  const larger = Store.openSync("memory:", { maxMessageBytes: 40 << 20 });
  larger.requestSync({ create: "support", settings: { counter: "approx" }, messages: [user("x".repeat(33 << 20))] });
  for (const maxMessageBytes of [0, -1, 1.5, NaN, 2 ** 32]) {
    await assert.rejects(Store.open("memory:", { maxMessageBytes }), { code: "invalid_operation", field: "maxMessageBytes" });
  }
  await assert.rejects(Store.open("memory:", { maxMessageBytes: "1" }), /^TypeError: maxMessageBytes must be a number, not string/);
  await assert.rejects(Store.open("memory:", null), /^TypeError: options must be an object, not null/);
});
