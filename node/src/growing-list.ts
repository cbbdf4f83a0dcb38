import { isDeepStrictEqual } from "node:util";

import { checkBudget } from "./checks.js";
import { BudgetTooSmall } from "./errors.js";
import type { FitOptions } from "./lists.js";
import { fit, repair } from "./lists-native.js";
import type { CounterName, Provider } from "./types.js";

export interface BudgetOptions {
  /** The largest number of tokens of the messages of a model call. Instructions and tools are not counted. */
  maxTokens: number;
  /**
   * The number of tokens that a longer list is cut down to. Default: 70 % of `maxTokens`. Each cut changes the
   * front of the request, which ends the provider's prompt cache: cut rarely, and deeply.
   */
  targetTokens?: number;
  /** The token counter. Default: `o200k_base`. */
  counter?: CounterName;
}

/**
 * The messages of a run, which become more with each model call. A cut holds until the next one: messages that it
 * dropped do not return, so between two cuts the front of the request stays the same.
 */
export class GrowingList<M extends object> {
  readonly #format: string;
  readonly #provider: Provider;
  readonly #options: BudgetOptions;
  /** The list of the last call. */
  #last: readonly M[] = [];
  /** Positions in it that the last cut kept. */
  #kept: number[] = [];

  constructor(format: string, provider: Provider, options: BudgetOptions) {
    checkBudget(options);
    this.#format = format;
    this.#provider = provider;
    this.#options = options;
  }

  /** The messages for the model: within the budget, and valid for the provider. */
  shape(messages: readonly M[]): M[] {
    const isSame = (message: M, at: number) => message === messages[at] || isDeepStrictEqual(message, messages[at]);
    const continues = messages.length >= this.#last.length && this.#last.every(isSame);
    const start = continues ? this.#last.length : 0;
    const candidates = continues ? [...this.#kept] : [];
    for (let at = start; at < messages.length; at++) candidates.push(at);
    const fitted = this.#fit(candidates.map((at) => messages[at]!));
    this.#kept = fitted.positions.map((at) => candidates[at!]!);
    this.#last = [...messages];
    return repair(fitted.messages, this.#provider, this.#list()).messages;
  }

  #fit(messages: M[]): ReturnType<typeof fit<M>> {
    const { maxTokens, targetTokens = Math.floor(maxTokens * 0.7) } = this.#options;
    const options: FitOptions = { ...this.#list(), targetTokens: Math.min(targetTokens, maxTokens) };
    try {
      return fit(messages, maxTokens, options);
    } catch (error) {
      // The newest exchange alone is larger than the target, so the list is cut to the smallest possible size.
      if (!(error instanceof BudgetTooSmall) || error.needed === undefined || error.needed > maxTokens) throw error;
      return fit(messages, maxTokens, { ...options, targetTokens: error.needed });
    }
  }

  #list(): { format: string; counter?: CounterName } {
    const { counter } = this.#options;
    return { format: this.#format, ...(counter && { counter }) };
  }
}
