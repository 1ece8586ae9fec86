//! The files in `crds/`, and their copies in the chart, are what the types generate.

use std::path::PathBuf;
use troupe::install::crds;

/// The most that one CRD file may have; the originals' run to megabytes.
const MOST_BYTES: usize = 200 * 1024;

/// The folders that have the files: the chart's own is there since Helm reads nothing outside of a chart.
fn folders() -> [PathBuf; 2] {
    ["../crds", "../deploy/chart/files/crds"].map(|folder| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder))
}

#[test]
fn the_files_are_what_the_types_generate() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    for folder in folders() {
        let mut expected = Vec::new();
        for crd in crds::all() {
            let name = format!("{}.yaml", crd.metadata.name.clone().unwrap());
            let (path, text) = (folder.join(&name), crds::yaml(&crd).unwrap());
            assert!(text.len() <= MOST_BYTES, "{name} has {} bytes", text.len());
            if update {
                std::fs::write(&path, &text).unwrap();
            }
            let there = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(there == text, "{} is out of date; run the tests with UPDATE_EXPECT=1", path.display());
            expected.push(name);
        }
        let entries = std::fs::read_dir(&folder).unwrap();
        let mut there: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(there, expected, "{} has one file a kind and nothing else", folder.display());
    }
}
