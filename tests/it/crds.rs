//! The files in `crds/` are what the types generate.

use std::path::PathBuf;
use troupe::install::crds;

/// The most that one CRD file may have; the originals' run to megabytes.
const MOST_BYTES: usize = 200 * 1024;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crds")
}

#[test]
fn the_files_are_what_the_types_generate() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut expected = Vec::new();
    for crd in crds::all() {
        let name = format!("{}.yaml", crd.metadata.name.clone().unwrap());
        let (path, text) = (folder().join(&name), crds::yaml(&crd).unwrap());
        assert!(text.len() <= MOST_BYTES, "{name} has {} bytes", text.len());
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "crds/{name} is out of date; run the tests with UPDATE_EXPECT=1");
        expected.push(name);
    }
    let mut there: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    assert_eq!(there, expected, "one file a kind and nothing else");
}
