#!/bin/sh
# Runs the compiler on a crate of this workspace with nodes of a few entries (RUSTC_WORKSPACE_WRAPPER).
exec "$@" --cfg recto_tiny_nodes
