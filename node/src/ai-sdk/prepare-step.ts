import { isDeepStrictEqual } from "node:util";

import { asList, asObject, checkBudget } from "../checks.js";
import { BudgetTooSmall } from "../errors.js";
import { Store } from "../store.js";
import type { CounterName, MarkMap, Outcome, Stats } from "../types.js";
import { repair, toRecto, type ModelMessage } from "./model-messages.js";

export interface PrepareStepOptions {
  /** The largest number of tokens of the messages of a step. */
  maxTokens: number;
  /**
   * The number of tokens that a longer list is cut down to. Default: 70 % of `maxTokens`. Each cut changes the
   * front of the request, which ends the provider's prompt cache: cut rarely, and deeply.
   */
  targetTokens?: number;
  /** The token counter. Default: `o200k_base`. */
  counter?: CounterName;
  /** Called after each cut. */
  onCut?: (cut: { hidden: number; tokensBefore: number; tokens: number }) => void;
}

/**
 * A function for `prepareStep` of `generateText` and `streamText` (AI SDK 6 and 7): the messages of each step
 * fit the budget, and each tool call has its result. The messages of the result are the caller's own objects,
 * and the history of the caller is not changed. Make one function per run.
 */
export function prepareStep(options: PrepareStepOptions): <M extends ModelMessage>(step: { messages: M[] }) => { messages: M[] } {
  const steps = new Steps(options);
  return <M extends ModelMessage>(step: { messages: M[] }) => {
    const messages = asList(asObject(step, "step").messages, "step.messages");
    messages.forEach((message, at) => asObject(message, `step.messages[${at}]`));
    return { messages: steps.prepare(messages) as M[] };
  };
}

/** The messages of a run, and those of them that the model reads: a conversation in memory. */
class Steps {
  readonly #options: PrepareStepOptions;
  #store!: Store;
  /** All messages so far. The index of a message is its index in the log. */
  #log: ModelMessage[] = [];
  /** What the last step returned. AI SDK 7 gives it to the next step, with the new messages behind it. */
  #returned: ModelMessage[] = [];
  readonly #made = new Map<string, ModelMessage>();

  constructor(options: PrepareStepOptions) {
    checkBudget(options);
    this.#options = options;
    this.#begin();
  }

  prepare(messages: readonly ModelMessage[]): ModelMessage[] {
    const added = behind(messages, this.#log) ?? behind(messages, this.#returned);
    // Another history than that of the last step.
    if (added === undefined) this.#begin();
    this.#append(added ?? messages);
    this.#fit();
    const { originalIndices } = this.#request<MarkMap>({ markMap: true });
    const view = originalIndices.map((index) => this.#log[index]!);
    this.#returned = repair(view, this.#made);
    return this.#returned;
  }

  #begin(): void {
    const { counter } = this.#options;
    this.#store = Store.openSync("memory:");
    this.#store.requestSync({ create: "steps", settings: { counter } });
    this.#log = [];
    this.#returned = [];
  }

  #append(messages: readonly ModelMessage[]): void {
    if (messages.length === 0) return;
    this.#request({ op: { operation: "APPEND", messages: messages.map(toRecto) } });
    this.#log.push(...messages);
  }

  #fit(): void {
    const { maxTokens, targetTokens = Math.floor(maxTokens * 0.7), onCut } = this.#options;
    const { tokens: tokensBefore } = this.#request<Stats>({ stats: true });
    if (tokensBefore <= maxTokens) return;
    const fit = (limit: number) => this.#request<Outcome>({ op: { operation: "FIT", maxTokens: limit } });
    let outcome: Outcome;
    try {
      outcome = fit(Math.min(targetTokens, maxTokens));
    } catch (error) {
      // The newest exchange alone is larger than the target: the least that can be sent.
      if (!(error instanceof BudgetTooSmall) || error.needed === undefined || error.needed > maxTokens) throw error;
      outcome = fit(error.needed);
    }
    onCut?.({ hidden: outcome.hidden.length, tokensBefore, tokens: outcome.stats.tokens });
  }

  #request<R>(request: Record<string, unknown>): R {
    return this.#store.requestSync<R>({ conversation: "steps", ...request });
  }
}

/** The messages behind a known front; `undefined` if the list does not begin with it. */
function behind(messages: readonly ModelMessage[], front: readonly ModelMessage[]): readonly ModelMessage[] | undefined {
  if (messages.length < front.length) return undefined;
  const isSame = front.every((known, at) => known === messages[at] || isDeepStrictEqual(known, messages[at]));
  return isSame ? messages.slice(front.length) : undefined;
}
