//! The SDK's code for the contract is what wit-bindgen generates. It is kept as a file, so that neither the host nor a
//! plugin's author builds the generator, which is a minute of work in a build from nothing.

#![cfg(test)]

use similar::TextDiff;
use std::{env, fs, path::Path};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_bindgen_rust::Opts;
use wit_parser::Resolve;

const HEAD: &str =
    "//! What wit-bindgen generates from `wit/`, and nothing else. A test keeps it so (`tests/bindings`).
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::semicolon_if_nothing_returned
)]

";

fn generated(sdk: &Path) -> String {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(sdk.join("wit")).unwrap();
    let world = resolve.select_world(&[package], Some("plugin")).unwrap();
    let options = Opts {
        format: true,
        pub_export_macro: true,
        export_macro_name: Some("__export_troupe_plugin".to_owned()),
        default_bindings_module: Some("troupe_plugin::__bindings".to_owned()),
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, code) = files.iter().next().unwrap();
    format!("{HEAD}{}", std::str::from_utf8(code).unwrap())
}

#[test]
fn the_bindings_of_the_sdk_are_what_the_generator_makes_of_the_contract() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/sdk");
    let (file, wanted) = (sdk.join("src/bindings.rs"), generated(&sdk));
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let there = fs::read_to_string(&file).unwrap();
    if there != wanted {
        let differs = TextDiff::from_lines(&there, &wanted).unified_diff().context_radius(1).to_string();
        let start: String = differs.lines().take(40).map(|line| format!("{line}\n")).collect();
        panic!("{} is out of date; run the tests with UPDATE_EXPECT=1:\n{start}", file.display());
    }
}
