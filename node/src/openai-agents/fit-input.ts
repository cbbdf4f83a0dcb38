import type { AgentInputItem, CallModelInputFilter } from "@openai/agents-core";

import { GrowingList, type BudgetOptions } from "../growing-list.js";

/**
 * A `callModelInputFilter`: the input of each model call fits the budget, and each call has its result. Items that
 * were not made by a repair are the caller's own objects. Make one filter per run.
 */
export function fitInput(options: BudgetOptions): CallModelInputFilter<any> {
  const list = new GrowingList<AgentInputItem>("openai-agents-js", "openai-responses", options);
  return ({ modelData }) => ({ ...modelData, input: list.shape(modelData.input) });
}
