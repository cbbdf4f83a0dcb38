// The work that all agents of `frameworks.mjs` do, as in `python/bench/scenario.py`: a user with six questions about
// one failure. For each question the model reads CALLS files and answers. In one turn the run is stopped while a tool
// runs; the user asks the next question afterwards. The model accepts WINDOW tokens, and agents keep to BUDGET,
// because the provider also counts names, ids and arguments.

import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const CALLS = 12;
export const WINDOW = 12_000;
export const BUDGET = 8_000;
export const TARGET = 4_800;
/** Messages that means keep that count messages: about as many as fit the budget. */
export const KEPT_MESSAGES = 20;
export const INSTRUCTIONS = "You look for the cause of failures. Read files until you have found it.";
const QUESTIONS = [
  "Why does the checkout fail?",
  "Does it also fail for logged-in users?",
  "Since which release?",
  "Which service is slow?",
  "What did it log in June?",
  "What should we change?",
];
/** The turn, from 0, and the call in it, from 1, that is interrupted. */
const INTERRUPTED = { turn: 2, call: 5 };

/** The work of one agent, and its figures. */
export class Scenario {
  /** The URL of the provider for this run. */
  url;
  #turn = -1;
  #calls = 0;
  #results = 0;
  #answered = 0;
  #seconds = 0;
  #isInterrupted = false;
  /** Failures that are not refusals of the provider, by their name. */
  #failures = {};

  constructor(url) {
    this.url = url;
  }

  /** The tool of the agent. `stop` is called in the call that is interrupted, which throws. */
  read(path, stop = () => {}) {
    this.#calls++;
    if (this.#turn === INTERRUPTED.turn && this.#calls === INTERRUPTED.call) {
      this.#isInterrupted = true;
      stop();
      throw new Error(`interrupted: ${path}`);
    }
    this.#results++;
    const two = (number) => String(number).padStart(2, "0");
    const line = (at) =>
      `2026-06-${two(at)} 14:${two((at * 7 + this.#results) % 60)}:31 WARN ${path}: request ` +
      `${this.#results * 1000 + at} to payments took ${(at * 137) % 900} ms, retry ${at % 4}`;
    return Array.from({ length: 12 }, (_, at) => line(at + 1)).join("\n");
  }

  /** Asks all questions. `turn` asks one, and throws if there is no answer. */
  async ask(turn) {
    for (const [number, question] of QUESTIONS.entries()) {
      await fetch(`${this.url}/turn`);
      [this.#turn, this.#calls, this.#isInterrupted] = [number, 0, false];
      const begin = process.cpuUsage();
      const error = await turn(question, number).then(() => undefined, (thrown) => thrown);
      const { user, system } = process.cpuUsage(begin);
      this.#seconds += (user + system) / 1e6;
      if (this.#isInterrupted) continue;
      if (error === undefined) this.#answered++;
      else if (!isRefusal(error)) this.#failures[error.name] = (this.#failures[error.name] ?? 0) + 1;
    }
  }

  /** The figures: `left` messages are still in the history, `folder` has all that was stored. */
  async row(left, folder) {
    const { refused, ...sent } = await (await fetch(`${this.url}/figures`)).json();
    return {
      ...sent,
      refused: { ...refused, ...this.#failures },
      answered: this.#answered,
      questions: QUESTIONS.length,
      left,
      made: QUESTIONS.length + sent.accepted + this.#results,
      bytes: bytesIn(folder),
      seconds: this.#seconds,
    };
  }
}

/** Whether the provider has refused a request, which is in its own figures. */
function isRefusal(error) {
  const { status, statusCode, cause } = error;
  return status === 400 || statusCode === 400 || (cause instanceof Error && isRefusal(cause));
}

function bytesIn(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

/** A list in a file that is written again after each change, as an application without Recto stores it. */
export class FileList {
  #file;

  constructor(file) {
    this.#file = file;
  }

  async load() {
    return existsSync(this.#file) ? JSON.parse(readFileSync(this.#file, "utf8")) : [];
  }

  async save(list) {
    writeFileSync(this.#file, JSON.stringify(list));
  }
}
