//! What this crate promises, over whole files and whole conversations.

mod conserved;
mod files;
mod openai_chat;
mod operations;
mod render;
