//! The commands by which plugins/README.md has its readers fetch a recording, run as they stand there.

use super::commands::troupe;

use serde_json::json;
use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The command of plugins/README.md that begins so.
pub(crate) fn command(start: &str) -> String {
    let text = include_str!("../../../plugins/README.md");
    let from = text.find(&format!("`{start}")).expect("plugins/README.md has it") + 1;
    let length = text[from..].find('`').expect("it has an end");
    text[from..from + length].replace('\n', " ")
}

/// Runs it in a new folder, which is returned with what it printed. Its address is at another; `kubectl` prints its last
/// argument, as if that were a token.
pub(crate) fn run(command: &str, name: &str, (is, at): (&str, SocketAddr)) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documented").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".curlrc"), format!("connect-to = \"{is}:{at}\"\nnoproxy = \"*\"\nsilent\nshow-error\n"))
        .unwrap();
    let kubectl = folder.join("kubectl");
    fs::write(&kubectl, "#!/bin/sh\nfor token; do :; done\necho \"$token\"\n").unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(&folder).env("CURL_HOME", &folder).env("PATH", path);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    (folder, String::from_utf8(output.stdout).unwrap())
}

#[test]
#[cfg_attr(lacks_curl, ignore = "needs curl")]
fn a_recording_is_fetched_from_a_host_on_this_machine() {
    let host = super::served(&json!({}));
    let expected = host.passes().latest().count();
    let (_runtime, address) = super::admin_port(host);
    let whole = command("curl \"http");
    for (command, with) in
        [(&whole, &["test", "paddle"][..]), (&whole.replace("?env=true", ""), &["diff", "paddle", "paddle"])]
    {
        let (folder, _) = run(command, "here", ("localhost:8080", address));
        let passes = folder.join("passes.jsonl");
        assert_eq!(fs::read_to_string(&passes).unwrap().lines().count(), expected);
        let (well, text) = troupe(&[&["plugin"], with, &["--recording", passes.to_str().unwrap()]].concat());
        assert!(well, "{command}: {text}");
    }
}
