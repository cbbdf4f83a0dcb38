#!/usr/bin/env python3
"""Counts the tokens of a file with one JSON string per line, with tiktoken's o200k_base.

    python tokens.py TEXTS.jsonl [RUNS]

Prints {"seconds", "tokens", "bytes", "firstSeconds", "loadSeconds", "version"}: `seconds` is the shortest
of RUNS passes (default: 7) after the first pass, which is the warm-up. The example `count_lines` of
recto-core does the same. tiktoken downloads its vocabulary; here the vocabulary is read from the wheel of
llama-index-core, which is not imported:

    python3 -m venv VENV
    VENV/bin/pip install tiktoken==0.14.0
    VENV/bin/pip install --no-deps llama-index-core==0.14.25
"""
import json
import os
import sys
import time
from importlib import metadata

VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"  # what tiktoken calls o200k_base in its cache


def find_vocabulary():
    """Sets the folder of tiktoken's vocabulary, unless the environment has one."""
    if os.environ.get("TIKTOKEN_CACHE_DIR"):
        return
    try:
        files = metadata.files("llama-index-core") or []
    except metadata.PackageNotFoundError:
        sys.exit("no vocabulary: pip install --no-deps llama-index-core==0.14.25, or set TIKTOKEN_CACHE_DIR")
    for file in files:
        if file.name == VOCABULARY:
            os.environ["TIKTOKEN_CACHE_DIR"] = str(file.locate().parent)
            return
    sys.exit("this llama-index-core has no o200k_base; 0.14.25 has it")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: tokens.py TEXTS.jsonl [RUNS]")
    runs = int(sys.argv[2]) if len(sys.argv) == 3 else 7
    with open(sys.argv[1], encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]

    find_vocabulary()
    start = time.perf_counter()
    import tiktoken

    encode = tiktoken.get_encoding("o200k_base").encode_ordinary
    encode("load the vocabulary")
    load = time.perf_counter() - start

    def count_all():
        start = time.perf_counter()
        tokens = sum(len(encode(text)) for text in texts)
        return time.perf_counter() - start, tokens

    first, tokens = count_all()
    seconds = min([first] + [count_all()[0] for _ in range(runs)])
    print(
        json.dumps(
            {
                "seconds": seconds,
                "tokens": tokens,
                "bytes": sum(len(text.encode()) for text in texts),
                "firstSeconds": first,
                "loadSeconds": load,
                "version": metadata.version("tiktoken"),
            }
        )
    )


if __name__ == "__main__":
    main()
