//! Where the library is looked for, and what is said when it cannot be used.

use super::*;

fn variables(set: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
    move |name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into())
}

#[test]
fn a_named_library_is_the_only_candidate() {
    let set = &[(LIBRARY_VARIABLE, "/opt/own/libascendcl.so"), ("ASCEND_HOME_PATH", "/opt/cann")];
    assert_eq!(candidates(variables(set)), [PathBuf::from("/opt/own/libascendcl.so")]);
}

#[test]
fn the_toolkit_of_the_environment_goes_before_the_default_folders() {
    let found = candidates(variables(&[("ASCEND_HOME_PATH", "/opt/cann")]));
    let position = |path: &str| found.iter().position(|found| found == Path::new(path));
    assert_eq!(position("libascendcl.so"), Some(0), "the loader's own path comes first");
    assert!(position("/opt/cann/lib64/libascendcl.so") < position("/usr/local/Ascend/cann/lib64/libascendcl.so"));
    assert!(position("/usr/local/Ascend/ascend-toolkit/latest/lib64/libacl_rt.so").is_some());
    assert_eq!(candidates(variables(&[("ASCEND_HOME_PATH", "/usr/local/Ascend/cann")])).len(), 6, "no folder twice");
}

#[test]
fn an_absent_library_says_where_it_was_looked_for() {
    let path = Path::new("/nowhere/libascendcl.so");
    let absence = Library::open(Some(path)).unwrap_err();
    assert_eq!(absence, Absence::NotFound { looked: vec![path.to_owned()] });
    let text = absence.to_string();
    assert!(text.contains("`/nowhere/libascendcl.so`") && text.contains(LIBRARY_VARIABLE), "{text}");
}

#[test]
fn a_file_that_is_no_library_is_refused_by_name() {
    let file = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
    std::fs::write(file.path(), "no library").unwrap();
    let absence = Library::open(Some(file.path())).unwrap_err();
    assert!(matches!(&absence, Absence::Refused { .. }), "{absence:?}");
    assert!(absence.to_string().contains(&file.path().display().to_string()), "{absence}");
}

#[test]
fn an_absent_driver_is_told_from_an_absent_toolkit() {
    let reason = "libascend_hal.so: cannot open shared object file: No such file or directory".to_owned();
    let absence = Absence::Refused { path: "/opt/cann/lib64/libascendcl.so".into(), reason };
    let text = absence.to_string();
    assert!(text.starts_with("the Ascend driver is not installed") && text.contains("libascend_hal.so"), "{text}");
}
