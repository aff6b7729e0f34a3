//! Golden: the frozen streams are decoded, and encoded again to the same bytes.

use crate::codecs::Needs;
use crate::golden::{Golden, Manifest};
use crate::jobs::{Decoding, Encoding, check_decodings, check_encodings};
use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    match Manifest::read() {
        Ok(manifest) => manifest
            .streams
            .into_iter()
            .map(|golden| {
                let needs = needs(&golden);
                Case::new(format!("golden/{}", golden.name), move |subject| check(subject, &golden)).needing(needs)
            })
            .collect(),
        Err(error) => {
            let message = error.to_string();
            vec![Case::new("golden/manifest", move |_| Err(message.clone().into()))]
        }
    }
}

fn needs(golden: &Golden) -> Needs {
    // By the plan: a stream that was to be of codec 2 and ended as stored is encoded again too.
    let is_cascade = golden.plan().is_ok_and(|plan| plan.coding().cascade().is_some());
    if is_cascade { Needs::Both } else { Needs::Nothing }
}

fn check(subject: &Subject, golden: &Golden) -> Result {
    let (frozen, elements) = (golden.frozen()?, golden.elements());
    check_decodings(subject, &[Decoding::of(&golden.name, &frozen)?.expecting(&elements)])?;
    // The jobs are compared with the reference, and the reference with the frozen file.
    check_encodings(subject, &[Encoding::by_plan(&golden.name, golden.plan()?, &elements)])?;
    ensure!(golden.encoded()? == frozen, "the reference encodes other bytes than the frozen ones");
    subject.codec().verify(&frozen)?;
    Ok(())
}
