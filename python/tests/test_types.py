"""The types of responses, compared with the JSON Schema of the requests."""

import json
import os
import subprocess
from pathlib import Path
from typing import get_args

import pytest

import recto
from recto import types as t

FOLDER = Path(__file__).parent
# The command prints the schema. RECTO_PROGRAM is its path; by default cargo builds it.
PROGRAM = os.environ.get("RECTO_PROGRAM")
CARGO = ["cargo", "run", "--quiet", "--package", "recto-cli", "--"]
COMMAND = [*([PROGRAM] if PROGRAM else CARGO), "exec", "--schema"]
SCHEMA = json.loads(subprocess.run(COMMAND, cwd=FOLDER, stdout=subprocess.PIPE, check=True).stdout)
RESPONSES = {
    "op": t.Outcome,
    "append": t.Appended,
    "setTools": t.Outcome,
    "info": t.Info,
    "diff": t.Difference,
    "stats": t.Stats,
    "render": t.Rendered,
    "state": t.State,
    "snapshot": t.BatchSnapshot,
    "tokens": t.TokenShares,
    "tokenCheck": t.CheckedTokens,
    "markMap": t.MarkMap,
    "settings": t.ConversationSettings,
    "prune": t.Pruned,
    "import": t.Imported,
}
ITEMS = {
    ("list", "conversations"): t.ConversationInfo,
    ("log", "versions"): t.VersionInfo,
    ("blame", "history"): t.Blame,
    ("blame", "marks"): t.MarkBlame,
    ("ask", "messages"): t.Entry,
    ("marks", "marks"): t.MarkedEntries,
    ("lint", "findings"): t.Finding,
    ("search", "messages"): t.SearchHit,
    ("fit", "repairs"): t.ListRepair,
    ("erase", "erased"): t.ErasedEntry,
}


def resolved(part):
    while "$ref" in part:
        found = SCHEMA
        for key in part["$ref"].lstrip("#/").split("/"):
            found = found[key]
        part = found
    for one in part.get("anyOf", []):
        if one.get("type") != "null":
            return resolved(one)
    return part


def response(name):
    (row,) = [row for row in SCHEMA["requests"] if row["names"][0] == name][:1]
    return resolved(row["response"])


def properties(part):
    """The fields of an object, and those that are always there."""
    part = resolved(part)
    fields, required = dict(part.get("properties", {})), set(part.get("required", []))
    for one in part.get("allOf", []):
        more, needed = properties(one)
        fields.update(more)
        required |= needed
    return fields, required


def check(part, kind):
    fields, required = properties(part)
    assert set(fields) == kind.__required_keys__ | kind.__optional_keys__
    # `append` without `format` is the request `op`, which returns no remarks.
    assert required - {"remarks"} == kind.__required_keys__ - {"remarks"}


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_has_the_fields_of_its_type(name):
    check(response(name), RESPONSES[name])


@pytest.mark.parametrize(("name", "field"), ITEMS)
def test_an_item_of_a_response_has_the_fields_of_its_type(name, field):
    listed = resolved(properties(response(name))[0][field])
    check(listed["items"], ITEMS[name, field])


def test_literal_types_have_all_names_of_the_schema():
    kinds = {"Provider": t.Provider, "Role": t.Role, "CounterName": t.CounterName}
    for name, kind in kinds.items():
        assert set(get_args(kind)) == set(SCHEMA["$defs"][name]["enum"]), name


def test_everything_public_is_exported():
    for name in recto.__all__:
        assert getattr(recto, name) is not None
