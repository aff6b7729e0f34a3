//! Every function of AscendCL fails at every call that a session makes of it: a clean error, the vendor's text in ours, nothing left behind.

use enec_ascend::{AscendBackend, FUNCTIONS};
use enec_conformance::inputs::Input;
use enec_core::search::search;
use enec_core::{Backend, Codec, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, Error, OpenOptions, Source, Target};
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, EncodePlan, Stream, reference};

use crate::controls::Machine;

/// Functions that undo something. Nobody can be told of their failure, and what they should have freed is lost.
const UNDOING: [&str; 5] =
    ["aclrtResetDevice", "aclrtDestroyStream", "aclrtDestroyEvent", "aclrtFree", "aclrtBinaryUnLoad"];
/// Functions that are called on the way to undoing something too; failing there is as good as failing in `UNDOING`.
const ON_BOTH_WAYS: [&str; 2] = ["aclrtGetCurrentContext", "aclrtSetCurrentContext"];
/// Functions without which all goes on: the text of an error, and the version in reports.
const DISPENSABLE: [&str; 2] = ["aclGetRecentErrMsg", "aclrtGetVersion"];

/// Uses every function: probes, opens, moves bytes in every direction, encodes and decodes in every placement, closes.
fn session(machine: &Machine) -> Result<(), Error> {
    let configuration = machine.configuration();
    AscendBackend::probe(&configuration)?;
    let backend = AscendBackend::open(&configuration, &OpenOptions::default())?;
    let elements =
        Input::Weights { seed: 1, top: 120, zeros: 1 }.bytes(Dtype::Bf16, BLOCK_ELEMENTS + TILE_ELEMENTS + 7);
    let coding = Coding::TwoWindows(search(Dtype::Bf16, &elements));
    let plan = EncodePlan::new(Dtype::Bf16, coding, elements.len() / 2)?;
    let expected = reference::encode_plan(&plan, &elements)?;

    // Offset 1 makes kernels work in scratch memory.
    for offset in [0, 1] {
        let from = backend.alloc(offset + elements.len())?;
        let to = backend.alloc(offset + plan.target_len())?;
        let from = from.slice(offset..offset + elements.len())?;
        let to = to.slice(offset..offset + plan.target_len())?;
        backend.upload(&elements, &from)?;
        let mut host = vec![0; plan.target_len()];
        let mut batch = EncodeBatch::new(backend.info());
        batch.push(EncodeJob::new(plan.clone(), Source::Device(from.clone()), Target::Device(to.clone())))?;
        batch.push(EncodeJob::new(plan.clone(), Source::Host(&elements), Target::Host(&mut host)))?;
        backend.encode(&mut batch)?;
        batch.into_results().try_for_each(|result| result.map(|_| ()))?;
        let mut written = vec![0; plan.target_len()];
        // On a thread that no device is current on.
        std::thread::scope(|scope| scope.spawn(|| backend.download(&to, &mut written)).join().expect("no panic"))?;
        assert_eq!(written[64..expected.len()], expected[64..], "encoded to the device");
        assert_eq!(host[64..expected.len()], expected[64..], "encoded to the host");

        let decode = DecodePlan::whole(&Stream::open(&expected)?);
        let source = to.slice(0..expected.len())?;
        let back = backend.alloc(offset + elements.len())?.slice(offset..offset + elements.len())?;
        let mut host = vec![0; elements.len()];
        let mut batch = DecodeBatch::new(backend.info());
        batch.push(DecodeJob::new(decode.clone(), Source::Device(source), Target::Device(back.clone())))?;
        batch.push(DecodeJob::new(decode, Source::Host(&expected), Target::Host(&mut host)))?;
        backend.decode(&mut batch)?;
        batch.into_results().try_for_each(|result| result)?;
        assert!(host == elements, "decoded to the host");
        backend.copy(&back, &from)?;
        backend.download(&from, &mut host)?;
        assert!(host == elements, "decoded to the device and copied");
    }
    assert!(backend.kernel_time().is_some());
    Ok(())
}

/// A session on a thread of its own, which no device is current on.
fn run(machine: &Machine) -> Result<(), Error> {
    std::thread::scope(|scope| scope.spawn(|| session(machine)).join().expect("no panic"))
}

/// What is alive, by kind.
fn alive(machine: &Machine) -> Vec<(&'static str, u64)> {
    let kinds = ["device", "stream", "event", "memory", "binary"];
    kinds.into_iter().map(|kind| (kind, machine.live(kind))).filter(|(_, count)| *count > 0).collect()
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn a_session_uses_every_function_and_leaves_nothing() {
    let machine = Machine::new();
    run(&machine).unwrap();
    for function in FUNCTIONS.iter().filter(|function| **function != "aclGetRecentErrMsg") {
        assert!(machine.calls(function) > 0, "`{function}` is not used");
    }
    assert_eq!(alive(&machine), []);
    assert_eq!(machine.misuse(), None);
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn every_failure_is_a_clean_error() {
    let machine = Machine::new();
    run(&machine).unwrap();
    let all: Vec<_> = FUNCTIONS.iter().map(|function| (*function, machine.calls(function))).collect();
    let mut failures = 0;
    for (function, calls) in all {
        // It is called once in the life of a library; the next test has it.
        if function == "aclInit" || DISPENSABLE.contains(&function) || UNDOING.contains(&function) {
            continue;
        }
        for call in 1..=calls {
            for only_then in [true, false] {
                let what = format!("`{function}` fails at call {call}{}", if only_then { "" } else { " and later" });
                machine.reset();
                machine.fail(function, call, only_then);
                let result = run(&machine);
                failures += 1;
                if let Err(error) = &result {
                    let told = matches!(error, Error::Unavailable { .. } | Error::Device { .. });
                    assert!(told, "{what}: {error:?}");
                    // The chip's name is a string, its absence has no code and no text.
                    let expected = format!("pretended failure of {function} at call");
                    let text = error.to_string();
                    assert!(function == "aclrtGetSocName" || text.contains(&expected), "{what}: {text}");
                    assert!(function == "aclrtGetSocName" || text.contains(&format!("`{function}`")), "{what}: {text}");
                }
                // Loading is tried a second time in another way.
                let may_go_on =
                    ON_BOTH_WAYS.contains(&function) || (only_then && function == "aclrtBinaryLoadFromFile");
                assert!(result.is_err() || may_go_on, "{what}, and nobody is told");
                assert_eq!(machine.misuse(), None, "{what}");
                // Sessions of other failures follow on the same machine: whatever is left would add up.
                machine.reset();
                assert_eq!(alive(&machine), [], "{what}");
            }
        }
    }
    assert!(failures > 200, "{failures} failures tried");
    run(&machine).unwrap();
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn failing_to_undo_breaks_nothing_else() {
    for function in UNDOING {
        let machine = Machine::new();
        machine.fail(function, 1, true);
        run(&machine).unwrap_or_else(|error| panic!("`{function}`: {error}"));
        assert_eq!(machine.misuse(), None, "`{function}`");
        let left: u64 = alive(&machine).into_iter().map(|(_, count)| count).sum();
        assert_eq!(left, 1, "`{function}`: one thing was not freed: {:?}", alive(&machine));
    }
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn an_initialisation_that_fails_is_told_and_tried_again() {
    let machine = Machine::new();
    machine.fail("aclInit", 1, true);
    let error = run(&machine).unwrap_err().to_string();
    assert!(
        error.contains("does not initialise: `aclInit` returned") && error.contains("pretended failure"),
        "{error}"
    );
    run(&machine).unwrap();
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn what_can_be_done_without_is() {
    let machine = Machine::new();
    machine.fail("aclrtGetVersion", 1, false);
    run(&machine).unwrap();
}

/// A framework in the same process, such as PyTorch, has initialised AscendCL and made a device current.
#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn a_framework_in_the_same_process_is_left_alone() {
    let machine = Machine::new();
    machine.has(2, 0, "Ascend910B2", 48);
    // SAFETY: the signatures are those of AscendCL.
    let library = unsafe { libloading::Library::new(machine.path()) }.unwrap();
    let call = |name: &str, argument: i32| {
        // SAFETY: both functions take an integer, or ignore it where a null pointer is wanted.
        let function: libloading::Symbol<'_, unsafe extern "C" fn(i64) -> i32> = unsafe { library.get(name) }.unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { function(argument.into()) }, 0, "{name}");
    };
    call("aclInit", 0);
    call("aclrtSetDevice", 1);
    let context = || {
        let mut context = 0_usize;
        // SAFETY: the function writes a pointer.
        let function: libloading::Symbol<'_, unsafe extern "C" fn(*mut usize) -> i32> =
            unsafe { library.get("aclrtGetCurrentContext") }.unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { function(&raw mut context) }, 0);
        context
    };
    let before = context();
    session(&machine).unwrap();
    assert_eq!(context(), before, "the framework's device is current as before");
    assert_eq!(alive(&machine), [("device", 1)], "the framework's own");
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn an_error_of_the_device_leaves_the_backend_usable() {
    let machine = Machine::new();
    let backend = AscendBackend::open(&machine.configuration(), &OpenOptions::default()).unwrap();
    let codec = Codec::new(std::sync::Arc::new(backend));
    let elements = Input::Weights { seed: 2, top: 120, zeros: 0 }.bytes(Dtype::Bf16, TILE_ELEMENTS);
    for function in ["aclrtLaunchKernelWithConfig", "aclrtSynchronizeStream", "aclrtEventElapsedTime", "aclrtMemcpy"] {
        machine.fail(function, 1, true);
        let error = codec.encode(Dtype::Bf16, &elements).unwrap_err();
        assert!(matches!(&error, Error::Device { .. }), "`{function}`: {error:?}");
        let stream = codec.encode(Dtype::Bf16, &elements).unwrap();
        assert!(codec.decode(&stream).unwrap() == elements, "after a failure of `{function}`");
    }
}
