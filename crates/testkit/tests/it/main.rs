//! The model against the conformance cases, and on its own under random steps.

mod conformance;
mod contract;
mod random_steps;
