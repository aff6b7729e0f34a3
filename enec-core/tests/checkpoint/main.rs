//! Whole checkpoints, with the reference codec as the backend.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod backend;
mod damage;
mod folders;
mod inputs;
mod inspection;
mod outputs;
mod reading;
mod round_trip;
mod sample;
