//! The bill of materials beside the image: what is in it, and what the published schema says of it.

use crate::operator::binary;
use harness::Python;
use image::{
    build, program,
    sbom::{self, Subject},
    troupe::{CERTIFICATES, NAME, authorities},
};
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

/// Fails with what the strict schema says of the bill in this file.
const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
";

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The bill of an image with the program of the tests.
fn bill() -> String {
    let files = [(CERTIFICATES, authorities().unwrap())];
    let architecture = program::architecture();
    let subject = Subject { name: NAME, digest: DIGEST, architecture, program: binary(), files: &files };
    sbom::bill(&build::workspace().unwrap(), &program::target(architecture).unwrap(), subject).unwrap()
}

#[test]
fn the_bill_of_materials_names_what_is_in_the_program_and_in_its_plugins_and_nothing_else() {
    let text = bill();
    assert!(text == bill(), "the same image has the same bill");
    assert!(!text.contains(env!("CARGO_MANIFEST_DIR").trim_end_matches("/tests")), "a path of this machine");
    let bill: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    assert_eq!(bill["metadata"]["component"]["hashes"][0]["content"], DIGEST.trim_start_matches("sha256:"));
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<_> = components.iter().map(|it| it["name"].as_str().unwrap()).collect();
    // Of the host, of what is linked from C, of every plugin, and what plugins alone are made of.
    for name in ["troupe-cli", "decide", "wasmtime", "kube-client", "ring", "zstd-sys", "libmimalloc-sys", "rust-std"]
        .into_iter()
        .chain(["cron", "job", "kubeflow", "mpi", "paddle", "rhino", "troupe-plugin", "wit-bindgen"])
    {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    // Feature of the simulator, tests, macros and build scripts.
    for name in ["lab", "sim", "tests", "image", "divan", "libfuzzer-sys", "serde_derive", "cc", "clap_derive"] {
        assert!(!names.contains(name), "{name} is in no program");
    }
    for it in components.iter().filter(|it| it["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/"))) {
        assert!(it["hashes"][0]["content"].as_str().is_some_and(|hash| hash.len() == 64), "{it}");
        assert!(!it["licenses"].is_null(), "{it}");
    }
    let references: Vec<_> = components.iter().map(|it| it["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(references.iter().collect::<BTreeSet<_>>().len(), references.len(), "a reference is there twice");
    let image = bill["metadata"]["component"]["bom-ref"].as_str().unwrap();
    let known: BTreeSet<_> = references.into_iter().chain([image]).collect();
    for dependency in bill["dependencies"].as_array().unwrap() {
        let used = dependency["dependsOn"].as_array().unwrap().iter().chain([&dependency["ref"]]);
        used.for_each(|it| assert!(known.contains(it.as_str().unwrap()), "{it} is no component"));
    }
}

#[test]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
fn the_bill_of_materials_is_valid_by_the_published_schema() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bill.cdx.json");
    let python = Python::cyclonedx().unwrap();
    fs::write(&file, bill()).unwrap();
    python.run(VALIDATE, &[file.to_str().unwrap()]).unwrap();
    let mut wrong: Value = serde_json::from_str(&bill()).unwrap();
    wrong["components"][0]["type"] = "binary".into();
    fs::write(&file, wrong.to_string()).unwrap();
    let told = python.run(VALIDATE, &[file.to_str().unwrap()]).unwrap_err().to_string();
    assert!(told.contains("binary"), "{told}");
}
