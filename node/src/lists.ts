import { InvalidRequest } from "./errors.js";
import { decode, encode } from "./json.js";
import type { CounterName, Provider, Role } from "./types.js";

export interface ListOptions {
  /**
   * The format of the messages, such as `openai-chat` or `vercel-model`. Default: `recto`; a message of another
   * format is then an `InvalidRequest` that names its format.
   */
  format?: string;
  /** The token counter. Default: `o200k_base`. */
  counter?: CounterName;
}

export interface FitOptions extends ListOptions {
  /**
   * The number of tokens that a longer list is cut down to. Default: the budget. Each cut changes the front of
   * the request, which ends the provider's prompt cache: cut rarely, and deeply.
   */
  targetTokens?: number;
  /** Whether system messages stay. Default: true. */
  keepSystem?: boolean;
  /** The role of the first message that stays, besides system messages. Default: any. */
  startOn?: Role;
  /** Positions of messages that stay. */
  keep?: readonly number[];
  /** The provider whose rules the list must follow afterwards. Default: no repairs. */
  repairFor?: Provider;
  /** The model. */
  model?: string;
}

export interface RepairOptions extends ListOptions {
  /** The model. */
  model?: string;
}

/** A repair of a list. */
export interface ListRepair {
  /** The name of the rule. */
  rule: string;
  severity: "error" | "warning" | "note";
  /** The position of the message that was given. */
  index: number;
  /** The problem. */
  message: string;
  /** How it was repaired. */
  repair: string;
}

/** A list that fits a budget, or that was repaired. */
export interface Fitted<M> {
  /** The list: the caller's own objects, and messages that a repair made. */
  messages: M[];
  /** For each message its position in the given list; `undefined` if a repair made it. */
  positions: (number | undefined)[];
  /** Positions of given messages that are not in the list. */
  dropped: number[];
  /** The tokens of the given list. */
  tokensBefore: number;
  /** The tokens of the list. */
  tokens: number;
  repairs: ListRepair[];
}

/** Functions about lists of messages. Nothing is stored. */
export interface Lists {
  /**
   * Keeps the newest messages that fit a token budget. Tool calls stay with their results. The given list and
   * its messages are not changed.
   */
  fit<M extends object>(messages: readonly M[], maxTokens: number, options?: FitOptions): Fitted<M>;
  /** Repairs a list for a provider: each tool call gets a result, each result has a call. */
  repair<M extends object>(messages: readonly M[], provider: Provider, options?: RepairOptions): Fitted<M>;
  /** The tokens of a text, of a message or of a list of messages. */
  countTokens(messages: string | object | readonly object[], options?: ListOptions): number;
}

/** The functions over `compute`, which performs a request without a store: JSON text in, JSON text out. */
export function listsOver(compute: (request: string) => string): Lists {
  const request = (fields: Record<string, unknown>) => decode(compute(encode(fields)));
  return {
    fit: (messages, maxTokens, options = {}) =>
      fitted(messages, request({ ...options, fit: asList(messages), maxTokens })),
    repair: (messages, provider, options = {}) =>
      fitted(messages, request({ ...options, repair: asList(messages), for: provider })),
    countTokens(messages, options = {}) {
      if (messages === "") return 0;
      if (typeof messages === "string") {
        const { counter } = options;
        // A message has 3 tokens besides its text.
        return request({ countTokens: [{ role: "user", content: messages }], counter }).tokens - 3;
      }
      return request({ ...options, countTokens: Array.isArray(messages) ? messages : [messages] }).tokens;
    },
  };
}

function asList<M>(messages: readonly M[]): readonly M[] {
  if (Array.isArray(messages)) return messages;
  throw new InvalidRequest({ code: "invalid_operation", message: "messages must be a list", field: "messages" });
}

interface Response extends Omit<Fitted<never>, "messages" | "positions"> {
  messages: { from?: number; made?: unknown }[];
}

function fitted<M>(given: readonly M[], { messages, ...rest }: Response): Fitted<M> {
  return {
    messages: messages.map(({ from, made }) => (from === undefined ? (made as M) : given[from]!)),
    positions: messages.map(({ from }) => from),
    ...rest,
  };
}
