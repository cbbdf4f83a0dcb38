// The algorithm of the seeds and Recto side by side, as seed 001 asks: node bench/seeds.mjs [MESSAGES]
//
// The first column is seed 004's array: each shaping operation copies all messages into a snapshot with
// JSON.parse(JSON.stringify(…)). The second is the mode that seed 001 replaces: clear, then add every message
// again. The third is `recto-context/message-array` in memory. Each time is the best of several runs, because other
// programs of the machine only add to a time.

import { MessageArrayManagerImpl } from "recto-context/message-array";

const count = Number(process.argv[2] ?? 10_000);
const asJson = process.argv.includes("--json");
const messages = Array.from({ length: count }, (_, n) => ({
  role: n % 2 ? "assistant" : "user",
  content: `Message ${n}: ${"the order of last week has not arrived yet; ".repeat(6)}`,
}));
const extra = { role: "user", content: "One more question about the order." };

/** Seed 004: the operations as its sections 3.2 and 4.2 write them. */
class SnapshotArray {
  constructor(initial) {
    this.state = { messages: initial, batchSnapshots: [], currentBatchIndex: 0, totalMessageCount: initial.length };
  }
  #opened(newMessages) {
    const { messages, batchSnapshots, currentBatchIndex } = this.state;
    const snapshot = {
      batchIndex: currentBatchIndex,
      timestamp: Date.now(),
      messages: JSON.parse(JSON.stringify(messages)),
      messageCount: messages.length,
    };
    this.state = {
      messages: newMessages,
      batchSnapshots: [...batchSnapshots, snapshot],
      currentBatchIndex: currentBatchIndex + 1,
      totalMessageCount: newMessages.length,
    };
  }
  execute(operation) {
    const { messages, batchSnapshots } = this.state;
    switch (operation.operation) {
      case "APPEND":
        this.state = { ...this.state, messages: [...messages, ...operation.messages] };
        return;
      case "INSERT": {
        const inserted = [...messages];
        inserted.splice(operation.position, 0, ...operation.messages);
        return this.#opened(inserted);
      }
      case "REPLACE": {
        const replaced = [...messages];
        replaced[operation.index] = operation.message;
        return this.#opened(replaced);
      }
      case "TRUNCATE":
        return this.#opened(messages.slice(-operation.keepLast));
      case "FILTER":
        return this.#opened(messages.filter((message) => operation.roles.includes(message.role)));
      case "ROLLBACK": {
        const { messages: restored } = batchSnapshots[operation.targetBatchIndex];
        this.state = {
          messages: JSON.parse(JSON.stringify(restored)),
          batchSnapshots: batchSnapshots.slice(0, operation.targetBatchIndex),
          currentBatchIndex: operation.targetBatchIndex,
          totalMessageCount: restored.length,
        };
      }
    }
  }
  getCurrentMessages() {
    return this.state.messages;
  }
}

/** Seed 001: the implementation that it replaces. */
class ReaddedList {
  messages = [];
  constructor(initial) {
    this.#set(initial);
  }
  #set(messages) {
    this.messages = [];
    for (const message of messages) {
      if (!message.role || !message.content) throw new Error("role and content are required");
      this.messages.push({ ...message });
    }
  }
  execute(operation) {
    const all = [...this.messages];
    switch (operation.operation) {
      case "APPEND":
        this.messages.push(...operation.messages.map((message) => ({ ...message })));
        return;
      case "INSERT":
        all.splice(operation.position, 0, ...operation.messages);
        return this.#set(all);
      case "REPLACE":
        all[operation.index] = operation.message;
        return this.#set(all);
      case "TRUNCATE":
        return this.#set(all.slice(-operation.keepLast));
      case "FILTER":
        return this.#set(all.filter((message) => operation.roles.includes(message.role)));
    }
  }
  getCurrentMessages() {
    return this.messages.map((message) => ({ ...message }));
  }
}

const middle = Math.floor(count / 2);
const operations = {
  APPEND: { operation: "APPEND", messages: [extra] },
  INSERT: { operation: "INSERT", position: middle, messages: [extra] },
  REPLACE: { operation: "REPLACE", index: middle, message: extra },
  TRUNCATE: { operation: "TRUNCATE", keepLast: middle },
  FILTER: { operation: "FILTER", roles: ["user"] },
  ROLLBACK: { operation: "ROLLBACK", targetBatchIndex: 0 },
};

/** Microseconds of `work` in the best of several runs. Each run is prepared anew. */
function best(runs, prepare, work) {
  let least = Infinity;
  for (let run = 0; run < runs; run++) {
    const value = prepare();
    const start = process.hrtime.bigint();
    work(value);
    least = Math.min(least, Number(process.hrtime.bigint() - start) / 1000);
  }
  return least;
}

/** Each run starts from the same list: Recto returns to it, the others are built again, both untimed. */
function measure(make, runs) {
  const times = {};
  for (const [name, operation] of Object.entries(operations)) {
    const prepared = make(name);
    times[name] = best(runs, prepared, (array) => array.execute(operation));
  }
  times.read = best(5, make("read"), (array) => array.getCurrentMessages());
  return times;
}

const opened = (array, name) => {
  if (name === "ROLLBACK") array.execute(operations.TRUNCATE);
  return array;
};
const copied = measure((name) => () => opened(new SnapshotArray(messages), name), 9);
const readded = measure((name) => () => opened(new ReaddedList(messages), name === "ROLLBACK" ? "" : name), 9);
const manager = new MessageArrayManagerImpl(messages);
const recto = measure((name) => () => {
  if (name !== "APPEND") manager.rollback(0);
  return opened(manager, name);
}, 41);
delete readded.ROLLBACK;

const rows = Object.keys(recto).map((name) => {
  const ratio = copied[name] / recto[name];
  return { operation: name, snapshots: copied[name], readded: readded[name], recto: recto[name], ratio };
});
if (asJson) {
  console.log(JSON.stringify({ messages: count, rows }));
} else {
  const cell = (value) => (value === undefined ? "–" : value.toFixed(1)).padStart(12);
  console.log(`${count} messages, best µs`);
  console.log(`${"".padEnd(10)}${["seed 004", "before 001", "Recto", "004 ÷ Recto"].map((s) => s.padStart(12)).join("")}`);
  for (const row of rows) {
    console.log(`${row.operation.padEnd(10)}${[row.snapshots, row.readded, row.recto, row.ratio].map(cell).join("")}`);
  }
}
