//! What this crate promises, over whole files and whole conversations.

mod chatgpt;
mod claude_code;
mod codex;
mod corpus;
mod files;
mod openai_chat;
