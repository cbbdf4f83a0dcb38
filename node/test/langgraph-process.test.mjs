// The checkpointer of LangGraph in several processes, and in processes that are killed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Store } from "recto-context";
import { RectoSaver } from "recto-context/langgraph";

import { FileSaver } from "./langgraph-process/file-saver.mjs";

const script = fileURLToPath(new URL("langgraph-process/turns.mjs", import.meta.url));

/** Starts a process with turns of a thread. `ended` is its exit code, or the signal that ended it. */
function start(folder, name, turns, killed = "") {
  const child = spawn(process.execPath, [script, folder, name, String(turns), String(killed)], { stdio: ["ignore", "pipe", "inherit"] });
  const ready = new Promise((resolve) => child.stdout.once("data", resolve));
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal ?? code)));
  return { child, ready, ended };
}

/** Checks that every checkpoint has the messages that it was put with. Returns the number of checkpoints. */
async function checkAll(folder) {
  const store = await Store.open(`sqlite:${join(folder, "conversations.db")}`, { search: false });
  const saver = new RectoSaver(new FileSaver(join(folder, "checkpoints")), store);
  let count = 0;
  for await (const { checkpoint } of saver.list({ configurable: { thread_id: "t" } })) {
    const messages = (checkpoint.channel_values.messages ?? []).map((message) => message.toDict());
    const expected = JSON.parse(readFileSync(join(folder, "expected", checkpoint.id), "utf8"));
    assert.deepEqual(JSON.parse(JSON.stringify(messages)), expected, checkpoint.id);
    count++;
  }
  assert((await store.verify()).sound);
  store.close();
  return count;
}

async function inFolder(run) {
  const folder = mkdtempSync(join(tmpdir(), "recto-"));
  try {
    await run(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("two processes on one thread lose nothing", () =>
  inFolder(async (folder) => {
    const processes = ["one", "two"].map((name) => start(folder, name, 15));
    assert.deepEqual(await Promise.all(processes.map(({ ended }) => ended)), [0, 0]);
    // Three checkpoints for each turn: the input, the start and the answer.
    assert((await checkAll(folder)) >= 2 * 15 * 2);
  }));

test("a process that is killed between its two writes leaves a thread that another one continues", () =>
  inFolder(async (folder) => {
    assert.equal(await start(folder, "first", 10, 8).ended, "SIGKILL");
    const before = await checkAll(folder);
    assert.equal(before, 7);
    assert.equal(await start(folder, "second", 3).ended, 0);
    assert((await checkAll(folder)) >= before + 3 * 2);
  }));

test("a process that is killed at any moment leaves whole checkpoints", () =>
  inFolder(async (folder) => {
    for (const delay of [5, 40, 120]) {
      const { child, ready, ended } = start(folder, `after ${delay} ms`, 10_000);
      await ready;
      await new Promise((resolve) => setTimeout(resolve, delay));
      child.kill("SIGKILL");
      assert.equal(await ended, "SIGKILL");
      await checkAll(folder);
    }
    assert.equal(await start(folder, "last", 2).ended, 0);
    assert((await checkAll(folder)) >= 4);
  }));
