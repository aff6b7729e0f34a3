//! Corpora: what fuzzing has found worth keeping, replayed.

use crate::{Case, Result, Subject, fuzzing};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("corpora/stream", |subject| replay("stream", |data| fuzzing::stream(data, &[subject.backend()]))),
        Case::new("corpora/roundtrip", |subject: &Subject| {
            replay("roundtrip", |data| fuzzing::roundtrip(data, &[subject.backend()]))
        }),
        Case::new("corpora/container", |subject: &Subject| {
            replay("container", |data| fuzzing::container(data, &subject.codec()))
        }),
    ]
}

fn replay(target: &str, run: impl Fn(&[u8]) -> fuzzing::Verdict) -> Result {
    for (name, data) in fuzzing::corpus(target)? {
        let run = std::panic::AssertUnwindSafe(|| run(&data));
        if std::panic::catch_unwind(run).is_err() {
            return Err(format!("fuzz/corpus/{target}/{name} makes it panic").into());
        }
    }
    Ok(())
}
