//! The program from outside: what it writes, what it refuses, what it says, and what it leaves behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

mod checkpoint;
mod damage;
#[cfg(unix)]
mod ending;
mod folder;
mod output;
mod program;
mod refusal;
mod round_trip;
mod text;
