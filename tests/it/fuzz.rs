//! The corpus of the fuzzers, and seeded changes of it: what the host reads of others never makes it panic.

use allocation_counter::measure;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{RngCore, SeedableRng},
};
use std::{fs, path::PathBuf};
use troupe::fuzz::{TARGETS, Target, decided, is_kept};

/// Changes of each file of the corpus.
const CHANGES: u32 = 200;

/// Bytes of memory that an input may take at once.
const MOST: u64 = 4 << 20;

/// What a byte may become: what JSON is made of, and what it is not.
const BYTES: &[u8] = b"{}[]\",:/~0-9.eE\\ntx\x00\xff";

fn corpus(target: Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target.name);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// The bytes with some of them replaced, left out or repeated.
fn changed(bytes: &[u8], random: &mut ChaCha20Rng) -> Vec<u8> {
    let mut below = |most: usize| usize::try_from(random.next_u64() % most.max(1) as u64).unwrap();
    let mut changed = bytes.to_vec();
    for _ in 0..1 + below(4) {
        let from = below(changed.len());
        let to = (from + 1 + below(24)).min(changed.len());
        match below(3) {
            0 if from < to => changed[from] = BYTES[below(BYTES.len())],
            1 => drop(changed.drain(from..to)),
            _ => {
                let again = changed[from..to].to_vec();
                let at = below(changed.len());
                changed.splice(at..at, again);
            }
        }
    }
    changed
}

/// The component that passes on what the host offers to plugins.
#[test]
fn the_component_that_calls_the_stubs_is_what_its_text_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/sandbox/src/fuzz");
    let wasm = wat::parse_file(format!("{folder}/stubs.wat")).unwrap();
    let path = format!("{folder}/stubs.wasm");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &wasm).unwrap();
    }
    assert!(fs::read(path).unwrap() == wasm, "stubs.wasm is out of date; run the tests with UPDATE_EXPECT=1");
}

// Or no change of it would come behind the check of plans.
#[test]
fn the_plan_of_the_corpus_is_judged_and_decided() {
    let target = TARGETS.into_iter().find(|target| target.name == "plan").unwrap();
    for (file, bytes) in corpus(target) {
        let actions = decided(&bytes).unwrap_or_else(|refused| panic!("{}: {refused}", file.display()));
        assert!(actions > 0, "{}", file.display());
    }
}

// Or no change of them would come behind the keys and the mark.
#[test]
fn the_config_maps_of_the_corpus_are_what_is_kept_of_a_plugin() {
    let target = TARGETS.into_iter().find(|target| target.name == "artifact").unwrap();
    let kept = corpus(target).into_iter().filter(|(_, bytes)| is_kept(bytes));
    let kept: Vec<_> = kept.map(|(file, _)| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(kept, ["kept-in-registry.json", "kept.json"]);
}

#[test]
fn what_the_host_reads_of_others_never_makes_it_panic() {
    for target in TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{} has a corpus", target.name);
        // What is made once is none of what an input takes.
        (target.run)(&corpus[0].1);
        for (number, (file, bytes)) in corpus.iter().enumerate() {
            eprintln!("{}", file.display());
            let mut random = ChaCha20Rng::seed_from_u64(number as u64);
            let inputs =
                (0..=CHANGES).map(|change| if change == 0 { bytes.clone() } else { changed(bytes, &mut random) });
            for input in inputs.collect::<Vec<_>>() {
                let taken = measure(|| (target.run)(&input)).bytes_max;
                assert!(taken <= MOST, "{} takes {taken} bytes", file.display());
            }
        }
    }
}
