//! The misdeeds, by name. Those that return give the JSON to answer with.

use serde_json::json;
use std::{collections::hash_map::RandomState, hash::BuildHasher, hint::black_box, time::Duration};
use troupe_plugin::{
    __bindings::troupe::framework::log,
    types::{Edit, Template},
};

const FLOOD: usize = 1_000_000;

/// Does what it is told; None when nothing is to be answered instead of the truth.
pub(crate) fn commit(misdeed: &str) -> Option<String> {
    match misdeed {
        "trap" => panic!("as I was told"),
        "loop" => spin(),
        "recurse" => black_box(deeper(0)).then(String::new),
        "recurse widely" => black_box(wider(0)).then(String::new),
        "allocate" => allocate(1 << 20),
        "allocate crumbs" => allocate(16),
        "exit" => std::process::exit(3),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            None
        }
        "log" => {
            (0..FLOOD).for_each(|_| log::write(log::Level::Info, "again", &[]));
            None
        }
        "log a lot" => {
            let line = "x".repeat(900_000);
            (0..FLOOD).for_each(|_| log::write(log::Level::Error, &line, &[]));
            None
        }
        "log a little" => {
            log::write(log::Level::Info, "one\u{1b}[31m", &[("key".into(), "value\n".into())]);
            None
        }
        "print" => {
            (0..FLOOD).for_each(|_| println!("again"));
            None
        }
        "huge" => Some(format!("\"{}\"", "x".repeat(8 << 20))),
        "large" => Some(format!("{{\"a\":\"{}\"}}", "x".repeat(300 << 10))),
        "no json" => Some("{".to_owned()),
        "no object" => Some("[1]".to_owned()),
        "deep json" => Some("[".repeat(100_000)),
        "no utf-8" => Some(no_utf8()),
        "take the node's network" => Some(pod(&json!({ "hostNetwork": true }))),
        "read a secret" => Some(pod(&json!({ "volumes": [{ "name": "v", "secret": { "secretName": "theirs" } }] }))),
        "bring a sidecar" => Some(pod(&json!({ "initContainers": [{ "name": "i", "image": "evil" }] }))),
        "be an admin" => Some(pod(&json!({ "serviceAccountName": "admin" }))),
        "speak for the host" => Some(
            json!({ "metadata": { "annotations": { "troupe.dev/plugin-digest": "x" } }, "data": {} }).to_string(),
        ),
        "own itself" => Some(
            json!({
                "metadata": { "name": "mine", "namespace": "theirs", "ownerReferences": [], "finalizers": ["mine/hold"] },
                "spec": { "containers": [{ "name": "c" }] },
            })
            .to_string(),
        ),
        "the ledger" => Some(json!({ "troupe": { "uid": "mine" } }).to_string()),
        "look around" => Some(look_around()),
        #[cfg(feature = "sockets")]
        "connect" => {
            drop(std::net::TcpStream::connect("192.0.2.1:80"));
            None
        }
        _ => None,
    }
}

/// The user's template with edits that cannot be made, or once too often.
pub(crate) fn edited(misdeed: &str) -> Option<Template> {
    let set = |at: &str, value: &str| vec![Edit::Set((at.to_owned(), value.to_owned()))];
    let (at, edits) = match misdeed {
        "refer to nothing" => ("/nowhere", vec![]),
        "refer to everything" => ("", vec![]),
        "refer again and again" => ("/template", vec![]),
        "edit what is not there" => ("/template", set("/spec/containers/7/image", "\"one\"")),
        "edit the whole" => ("/template", set("", "{}")),
        "edit deeply" => ("/template", set(&"/a".repeat(100_000), "1")),
        "edit twice" => ("/template", [set("/spec/hostname", "\"x\""), set("/spec/hostname/y", "1")].concat()),
        "edit without json" => ("/template", set("/spec/hostname", "{")),
        "edit too much" => ("/template", set("/spec/hostname", &format!("\"{}\"", "x".repeat(300 << 10)))),
        "append no list" => ("/template", vec![Edit::Append(("/spec/containers".into(), "{}".into()))]),
        "edit in a privilege" => ("/template", set("/spec/hostNetwork", "true")),
        _ => return None,
    };
    Some(Template::Edited((at.to_owned(), edits)))
}

/// The template of a pod with one container and this.
fn pod(more: &serde_json::Value) -> String {
    let mut template = json!({ "spec": more });
    template["spec"]["containers"] = json!([{ "name": "c" }]);
    template.to_string()
}

fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Ends when the stack does, or when the universe does. Takes so little of the stack in the guest's memory that the host's
/// is used up first.
fn deeper(depth: u64) -> bool {
    depth == u64::MAX || deeper(depth + 1) && black_box(depth) == depth
}

/// As [`deeper`], with so much of the stack in the guest's memory that this is used up first.
fn wider(depth: u64) -> bool {
    let here = black_box([depth; 256]);
    depth == u64::MAX || wider(depth + 1) && here[0] == depth
}

fn allocate(bytes: usize) -> ! {
    loop {
        black_box(Vec::<u8>::leak(black_box(vec![1; bytes])));
    }
}

fn no_utf8() -> String {
    // SAFETY: it is not safe; what the host makes of it is what is tested.
    #[allow(unsafe_code)]
    unsafe {
        String::from_utf8_unchecked(vec![0xc3, 0x28])
    }
}

/// What a guest can learn of the world that nobody told it.
#[allow(clippy::disallowed_methods)]
fn look_around() -> String {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ticking = std::time::Instant::now();
    black_box(spend());
    json!({
        "clock": u64::try_from(clock.as_millis()).unwrap_or_default(),
        "elapsed": u64::try_from(ticking.elapsed().as_nanos()).unwrap_or_default(),
        "variables": std::env::vars().count(),
        "arguments": std::env::args().count(),
        "file": std::fs::read_to_string("/etc/passwd").is_ok(),
        "files": std::fs::read_dir("/").is_ok(),
        "input": std::io::stdin().lines().count(),
        "chance": RandomState::new().hash_one(1).to_string(),
    })
    .to_string()
}

fn spend() -> u64 {
    (0..10_000_u64).fold(0, |sum, next| black_box(sum ^ next))
}
