// Ids that a name of a conversation must not be, or that similar ids must not be confused with.

const UUID = "0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a";

export const IDS = [
  UUID,
  UUID.toUpperCase(),
  "",
  "@",
  "\0",
  "\n",
  "a/b",
  "a%2Fb",
  "half \ud800 of a pair",
  "half \ud801 of a pair",
  "ü".repeat(300),
  "ü".repeat(299) + "u",
  "x".repeat(5_000),
];
