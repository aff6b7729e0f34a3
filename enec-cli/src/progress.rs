//! The progress bar, and Ctrl-C as the library sees it.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use enec::checkpoint::{Progress, Step};
use indicatif::{HumanDuration, ProgressBar, ProgressFinish, ProgressState, ProgressStyle};

use crate::interrupt;
use crate::printer::{Printable, Printer};

/// Shows how far a call of the library has come, on a terminal only, and ends it when the user wants that.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar that is drawn where `printer` says, and cleared when it is dropped.
    pub(crate) fn new(printer: Printer) -> Self {
        const TEMPLATE: &str = "[{bar:24}] {percent:>3}%, {rate}, {left}  {wide_msg}";
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(None, printer.progress_target())
            .with_style(style.with_key("rate", write_rate).with_key("left", write_left).progress_chars("=> "))
            .with_finish(ProgressFinish::AndClear);
        Self { bar }
    }
}

/// In gigabytes per second whatever it is, so that runs can be compared.
fn write_rate(state: &ProgressState, text: &mut dyn Write) {
    // The bar's key has no way to fail.
    let _ = write!(text, "{:.2} GB/s", state.per_sec() / 1e9);
}

/// Nothing can be said before something is done.
fn write_left(state: &ProgressState, text: &mut dyn Write) {
    let _ = match state.pos() {
        0 => write!(text, "time left unknown"),
        _ => write!(text, "{:#} left", HumanDuration(state.eta())),
    };
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn total(&mut self, bytes: u64) {
        self.bar.set_length(bytes);
        // Time left and throughput go on while a large tensor is under way.
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn file(&mut self, step: Step, path: &Path) {
        let verb = match step {
            Step::Compress => "compressing",
            Step::Decompress => "restoring",
            Step::Verify => "verifying",
            Step::Copy => "copying",
            _ => "reading",
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        self.bar.set_message(format!("{verb} {}", Printable(&name)));
    }

    fn advance(&mut self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn is_cancelled(&self) -> bool {
        interrupt::is_requested()
    }
}
