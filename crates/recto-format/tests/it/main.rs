//! Tests of the public interface with whole files and conversations.
mod chatgpt;
mod claude_code;
mod codex;
mod conserved;
mod corpus;
mod faults;
mod files;
mod hostile;
mod lists;
mod nested;
mod openai_chat;
mod operations;
mod recognise;
mod render;
mod tools;
mod traps;
mod views;
