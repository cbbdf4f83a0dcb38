//! What this crate promises, over whole files and whole conversations.

mod files;
mod openai_chat;
mod render;
