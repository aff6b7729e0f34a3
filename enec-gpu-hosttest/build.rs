//! Compiles the kernels for the host, as they are and with each fault.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[allow(dead_code, unreachable_pub, reason = "the library uses and exports the rest")]
#[path = "src/fault.rs"]
mod fault;

use fault::FAULTS;

/// The translation units of the kernels.
const UNITS: [&str; 3] = ["decode", "encode", "copy"];

/// Sanitizers of g++ to compile the kernels with, as its option takes them: `address,undefined`.
const SANITIZE: &str = "ENEC_SANITIZE";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let (kernels, shim) = (root.join("../enec-gpu/kernels"), root.join("shim"));
    for path in [&kernels, &shim, &root.join("src/fault.rs")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-env-changed={SANITIZE}");
    println!("cargo::rustc-check-cfg=cfg(has_shim)\ncargo::rustc-check-cfg=cfg(sanitized)");
    if let Some(reason) = absent()? {
        println!("cargo::rustc-env=ENEC_HOSTTEST_ABSENT={reason}");
        return Ok(());
    }
    println!("cargo::rustc-cfg=has_shim");

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut wrappers = Vec::new();
    let mut lookup = String::from("#include \"shim.h\"\n#include <string_view>\n");
    let mut rows = String::new();
    for unit in UNITS {
        wrappers.push(wrap(&kernels, unit, "", &out, &mut lookup, &mut rows)?);
    }
    let sanitize = env::var(SANITIZE).unwrap_or_default();
    for fault in FAULTS.iter().filter(|fault| fault.needs_sanitizer != sanitize.is_empty()) {
        let folder = out.join(fault.name);
        fs::create_dir_all(&folder)?;
        for file in fs::read_dir(&kernels)? {
            let file = file?;
            fs::copy(file.path(), folder.join(file.file_name()))?;
        }
        let original = fs::read_to_string(kernels.join(fault.file))?;
        if original.matches(fault.original).count() != 1 {
            return Err(format!("fault `{}`: its original is not exactly once in {}", fault.name, fault.file).into());
        }
        fs::write(folder.join(fault.file), original.replace(fault.original, fault.replacement))?;
        for unit in fault.units {
            wrappers.push(wrap(&folder, unit, fault.name, &out, &mut lookup, &mut rows)?);
        }
    }
    let table = out.join("table.cpp");
    writeln!(
        lookup,
        "static const struct {{ std::string_view fault, unit; const shim::Kernel *first; size_t count; }} TABLES[] = {{\n{rows}}};\n{LOOKUP}"
    )?;
    fs::write(&table, lookup)?;

    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(1).warnings(true).flag("-Wno-unknown-pragmas").include(&shim);
    // Kernels read the same bytes in several sizes; a misaligned access is an error on the device, so it is one here.
    build.flag("-fno-strict-aliasing");
    let mut scheduler = build.clone();
    if sanitize.is_empty() {
        // The only check that needs no library: what it finds ends the process.
        build.flag("-fsanitize=alignment").flag("-fsanitize-undefined-trap-on-error");
    } else {
        println!("cargo::rustc-cfg=sanitized");
        build.flag(format!("-fsanitize={sanitize}")).flag("-fno-sanitize-recover=all").flag("-fno-omit-frame-pointer");
        for sanitizer in sanitize.split(',') {
            let library = match sanitizer {
                "address" => "asan",
                "undefined" => "ubsan",
                _ => return Err(format!("{SANITIZE} names `{sanitizer}`; `address` and `undefined` are known").into()),
            };
            // Before the compiled kernels ask for the library of C++: the sanitizers' must come first.
            println!("cargo::rustc-link-lib={library}");
        }
    }
    build.files(wrappers).file(table).compile("enec_hosttest_kernels");
    // Switching stacks is not what a sanitizer expects.
    scheduler.file(shim.join("scheduler.cpp")).compile("enec_hosttest_scheduler");
    Ok(())
}

/// Why kernels cannot be run on the host, if they cannot.
fn absent() -> Result<Option<&'static str>, Box<dyn Error>> {
    if env::var("CARGO_CFG_TARGET_ARCH")? != "x86_64" || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(Some("kernels run on the host only on Linux on x86-64"));
    }
    let compiler = cc::Build::new().cpp(true).try_get_compiler()?;
    let runs = compiler.to_command().arg("--version").output().is_ok_and(|output| output.status.success());
    Ok((!runs).then_some("kernels run on the host only where there was a C++ compiler (`g++`) when this was built"))
}

/// Writes a source that includes a unit of the kernels in `folder` and lists its entry points.
fn wrap(
    folder: &Path,
    unit: &str,
    fault: &str,
    out: &Path,
    lookup: &mut String,
    rows: &mut String,
) -> Result<PathBuf, Box<dyn Error>> {
    let source = folder.join(format!("{unit}.cu"));
    let table = format!("kernels_{fault}_{unit}");
    let mut kernels = String::new();
    let mut count = 0;
    for line in fs::read_to_string(&source)?.lines() {
        let Some((name, rest)) = line.strip_prefix("ENTRY(").and_then(|line| line.split_once(',')) else { continue };
        let (_, rest) = rest.split_once("(const ").ok_or("an entry point without a table of jobs")?;
        let (job, _) = rest.split_once(' ').ok_or("an entry point without a table of jobs")?;
        writeln!(
            kernels,
            "{{\"{name}\", [](uint64_t jobs, uint32_t count) {{ {name}((const {job} *)jobs, count); }}}},"
        )?;
        count += 1;
    }
    let wrapper = out.join(format!("{table}.cpp"));
    let text = format!(
        "#include \"shim.h\"\nnamespace {{\n#include \"{}\"\n}}\nextern \"C\" const shim::Kernel {table}[];\nconst shim::Kernel {table}[] = {{\n{kernels}}};\n",
        source.display()
    );
    fs::write(&wrapper, text)?;
    writeln!(lookup, "extern \"C\" const shim::Kernel {table}[];")?;
    writeln!(rows, "{{\"{fault}\", \"{unit}\", {table}, {count}}},")?;
    Ok(wrapper)
}

/// Units that are the same with a fault are found among those without.
const LOOKUP: &str = r#"
extern "C" const shim::Kernel *enec_hosttest_kernel(const char *fault, size_t fault_len, const char *name, size_t name_len) {
    const shim::Kernel *found = nullptr;
    for (const auto &table : TABLES) {
        if (!table.fault.empty() && table.fault != std::string_view(fault, fault_len)) {
            continue;
        }
        for (size_t index = 0; index < table.count; index++) {
            if (table.first[index].name == std::string_view(name, name_len)) {
                found = table.first + index;
            }
        }
    }
    return found;
}
"#;
