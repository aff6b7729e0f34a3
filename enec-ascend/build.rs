//! With the feature `cann-build`, compiles the kernels by the CANN toolkit that the environment names, to be embedded. Without it, does nothing.

#[path = "build/toolkit.rs"]
mod toolkit;

use std::env;
use std::path::PathBuf;

use toolkit::Toolkit;

/// Environment variables that name the toolkit's folder; its `set_env.sh` sets them.
const VARIABLES: [&str; 2] = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(enec_ascend_object)");
    for path in ["build.rs", "build", "kernels"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if env::var_os("CARGO_FEATURE_CANN_BUILD").is_none() {
        return;
    }
    for variable in VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let Some(folder) = VARIABLES.iter().find_map(env::var_os).map(PathBuf::from) else {
        println!(
            "cargo::warning=no CANN toolkit: `{}` is not set (source its `set_env.sh`); the Ascend kernels are not built in",
            VARIABLES[0]
        );
        return;
    };
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let built = Toolkit::open(&folder)
        .and_then(|toolkit| toolkit.build("kernels".as_ref(), &output, &output.join("enec_kernels.o")));
    match built {
        Ok(()) => println!("cargo::rustc-cfg=enec_ascend_object"),
        Err(reason) => panic!("the Ascend kernels cannot be built: {reason}"),
    }
}
