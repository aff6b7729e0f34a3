//! The program `enec`: it parses arguments, calls the library and prints. All work is in the library.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod failure;
mod interrupt;
mod number;
mod printer;
mod profile_file;
mod progress;
mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::printer::Printer;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match interrupt::install().and_then(|()| command.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                Printer::error(&failure, failure.hint().as_deref());
            }
            failure.exit_code()
        }
    }
}
