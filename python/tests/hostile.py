"""Ids that applications really have, and texts that no name of a conversation may be."""

IDS = [
    "0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a",
    "0199F3A2-7C1E-7D44-9A5B-3F0E8C2D1B6A",
    "@",
    "",
    "\0",
    "\n",
    "a/b",
    "a",
    "a%2Fb",
    "%",
    "\u1680",
    "\x1680",
    "x" * 600,
    "x" * 5000,
    "中文" * 100,
]
