//! Makes the shells that the tests put hand-made modules into: a component around a module of no account, for the contract
//! as it is and as it might have been. Here and not in the tests, because what makes components shares crates with what
//! compiles them, and would have the tests compile them otherwise than the host does. It also finds out which tests cannot
//! run on this machine.

#[path = "harness/require.rs"]
mod require;

use std::{env, error::Error, fs, path::Path};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Name of a shell, a text of the contract and what stands in its place, and whether answers are cleared away.
const SHELLS: [(&str, &str, &str, bool); 5] = [
    ("plain", "", "", false),
    ("clearing", "", "", true),
    ("next-version", "package troupe:framework@0.1.0", "package troupe:framework@0.2.0", false),
    ("other-describe", "describe: func() -> descriptor", "describe: func() -> string", false),
    ("other-judge", "-> result<verdict, refusal>", "-> result<string, refusal>", false),
];

fn main() -> Result<(), Box<dyn Error>> {
    ignore_what_cannot_run()?;
    let contract = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../wit/framework.wit");
    println!("cargo::rerun-if-changed={}", contract.display());
    println!("cargo::rerun-if-changed=build.rs");
    let contract = fs::read_to_string(contract)?;
    for (name, old, new, clears) in SHELLS {
        let wit = if old.is_empty() { contract.clone() } else { contract.replace(old, new) };
        let shell = shell(&wit, if new.ends_with("0.2.0") { "0.2.0" } else { "0.1.0" }, clears)?;
        fs::write(Path::new(&env::var("OUT_DIR")?).join(format!("{name}.wasm")), shell)?;
    }
    Ok(())
}

fn shell(wit: &str, version: &str, clears: bool) -> Result<Vec<u8>, Box<dyn Error>> {
    let of = |function: &str| format!("troupe:framework/framework@{version}#{function}");
    let clear =
        if clears { format!(r#"(func (export "cabi_post_{}") (param i32))"#, of("plan")) } else { String::new() };
    let mut module = wat::parse_str(format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
            (func (export "{}") (result i32) unreachable)
            (func (export "{}") (param i32) (result i32) unreachable)
            (func (export "{}") (param i32) (result i32) unreachable)
            (func (export "{}") (param i32 i32 i32 i32 i32 i32) (result i32) unreachable)
            {clear})"#,
        of("describe"),
        of("plan"),
        of("bind"),
        of("judge"),
    ))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_str("framework.wit", wit)?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(ComponentEncoder::default().module(&module)?.encode()?)
}

/// Sets `lacks_NEED` where tests with this need cannot run on this machine, so that they are ignored by cargo's own count.
///
/// # Errors
/// `TROUPE_REQUIRE` names the need.
fn ignore_what_cannot_run() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=TROUPE_REQUIRE");
    println!("cargo::rerun-if-env-changed=PATH");
    println!("cargo::rerun-if-changed=harness/require.rs");
    let required = env::var("TROUPE_REQUIRE").unwrap_or_default();
    let (mut lacks, mut is_something_missing) = (vec![], false);
    for need in require::ALL {
        let name = need.name();
        println!("cargo::rustc-check-cfg=cfg(lacks_{name})");
        let Err(reason) = require::met(&required, need) else { continue };
        if require::named(&required, need) {
            return Err(format!("TROUPE_REQUIRE={required}, but {name} is not possible here: {reason}").into());
        }
        println!("cargo::rustc-cfg=lacks_{name}");
        lacks.push(format!("{name}={}", reason.replace([require::BETWEEN, '\n'], " ")));
        is_something_missing |= !require::is_opt_in(need);
    }
    // The set-up before the first test says so.
    println!("cargo::rustc-env=TROUPE_LACKS={}", lacks.join(&require::BETWEEN.to_string()));
    // A program that is installed later changes its folder. Where nothing is missing, cargo does not watch the folders: a
    // package that is installed for something else must not cause the tests to be linked again.
    let path = env::var_os("PATH").unwrap_or_default();
    for folder in env::split_paths(&path).filter(|folder| is_something_missing && folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    Ok(())
}
