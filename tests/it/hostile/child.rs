//! Compiling, and checking settings, in a child process: what it makes is what the host would have made, and what it uses up
//! ends with it.

use super::{
    corpus::{handmade_pass, told},
    guest,
    handmade::{Handmade, component, leb, module},
};
use crate::{operator::binary, trust::version};
use decide::plan::Answer;
use harness::until;
use sandbox::{Bounds, Compiler, ConfigError, Executor, LoadError, Options, Plugins, Settings, configured};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

async fn loaded(program: PathBuf, bounds: Bounds, wasm: &[u8]) -> Result<(Plugins, decide::Digest), LoadError> {
    let compiler = Compiler::Child { program, bounds };
    let plugins = Plugins::empty(Options { compiler, ..Options::new(Executor::Inline) }).unwrap();
    let digest = plugins.load_foreign("it", wasm).await?;
    Ok((plugins, digest))
}

async fn refused(bounds: Bounds, wasm: &[u8]) -> String {
    told(&loaded(binary().to_owned(), bounds, wasm).await.map(drop).unwrap_err())
}

/// A component that the gate lets pass and that takes a compiler its time: functions of 900 KB.
fn laborious(functions: usize) -> Vec<u8> {
    let step = [0x20, 0, 0x41, 7, 0x6c, 0x41, 3, 0x6a, 0x21, 0];
    let body = [&[0][..], &step.repeat(90_000), &[0x0b]].concat();
    let code = [leb(functions), [leb(body.len()), body].concat().repeat(functions)].concat();
    let types = [leb(functions), vec![0; functions]].concat();
    component(&[(1, &module(&[(1, &[1, 0x60, 1, 0x7f, 0]), (3, &types), (10, &code)]))])
}

#[tokio::test]
async fn a_plugin_that_a_child_compiled_is_the_same_plugin() {
    let here = Plugins::empty(Options::new(Executor::Inline)).unwrap();
    let wasm = guest("");
    let began = Instant::now();
    let digest = here.load("it", &wasm).unwrap();
    println!("compiled and described in process in {} ms", began.elapsed().as_millis());
    let began = Instant::now();
    let (there, same) = loaded(binary().to_owned(), Bounds::default(), &wasm).await.unwrap();
    println!("compiled in a child and described in {} ms", began.elapsed().as_millis());
    assert_eq!((digest, here.frameworks()), (same, there.frameworks()));

    let handmade = Handmade::default().component();
    let (there, _) = loaded(binary().to_owned(), Bounds::default(), &handmade).await.unwrap();
    assert!(matches!(handmade_pass(&there), Answer::Judged { .. }));
}

#[tokio::test]
async fn a_component_that_takes_too_long_to_compile_costs_a_child_and_an_error() {
    let wasm = laborious(12);
    let cpu = refused(Bounds { cpu_seconds: 1, ..Bounds::default() }, &wasm).await;
    assert!(cpu.starts_with("the compiler was stopped: it used up its processor time (1 s)"), "{cpu}");
    let wall = refused(Bounds { wall: Duration::from_millis(500), ..Bounds::default() }, &wasm).await;
    assert!(wall.starts_with("the compiler was stopped: it used up its time (500ms)"), "{wall}");
    loaded(binary().to_owned(), Bounds::default(), &Handmade::default().component()).await.unwrap();
}

#[tokio::test]
async fn a_component_that_takes_too_much_memory_to_compile_costs_a_child_and_an_error() {
    let bounds = Bounds { memory: 192 << 20, ..Bounds::default() };
    let memory = refused(bounds, &laborious(12)).await;
    assert!(memory.starts_with("the compiler was stopped: it used up its memory (201326592 bytes)"), "{memory}");
}

#[tokio::test]
async fn what_a_child_makes_is_read_up_to_a_limit_and_checked() {
    let wasm = Handmade::default().component();
    let output = refused(Bounds { output: 1000, ..Bounds::default() }, &wasm).await;
    assert!(output.starts_with("the compiler was stopped: it used up its output (1000 bytes)"), "{output}");
    let other_program = loaded("/bin/echo".into(), Bounds::default(), &wasm).await.map(drop).unwrap_err();
    assert!(matches!(other_program, LoadError::Compile(_)), "{other_program}");
    let no_program = loaded("/nowhere/at/all".into(), Bounds::default(), &wasm).await.map(drop).unwrap_err();
    assert_eq!(no_program.to_string(), "failed to run the compiler /nowhere/at/all");
}

#[tokio::test]
async fn a_schema_is_asked_in_a_child_and_says_what_the_host_would_have_been_told() {
    let wasm = version("settings");
    let compiler = Compiler::Child { program: binary().to_owned(), bounds: Bounds::default() };
    let plugins = Plugins::empty(Options { compiler, ..Options::new(Executor::Inline) }).unwrap();
    let prepared = plugins.prepare_foreign("paddle", &wasm).await.unwrap();
    let config = json!({ "no such": 1, "lean": "many" });
    let here = configured(&prepared.descriptor, &config).unwrap_err();
    let of = |config: &Value| Settings { config: Some(config.clone()), ..Settings::default() };
    let there = plugins.add(&prepared, &of(&config)).unwrap_err();
    assert!(matches!(there, ConfigError::Refused { .. }), "{there}");
    assert_eq!(there.to_string(), here.to_string());
    let lean = json!({ "lean": true });
    assert_eq!(*plugins.add(&prepared, &of(&lean)).unwrap(), configured(&prepared.descriptor, &lean).unwrap());
}

// Stands for a schema that a library works off for ever, or with more memory than there is.
#[tokio::test]
async fn a_schema_that_takes_too_long_costs_a_child_and_an_error() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slow-to-check");
    let script = format!("#!/bin/sh\n[ \"$1\" = compile ] && exec {} \"$@\"\nkill -XCPU $$\n", binary().display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let wasm = version("slow");
    let error = loaded(program.clone(), Bounds::default(), &wasm).await.map(drop).unwrap_err();
    let words = "the settings of plugin paddle cannot be checked by its schema: it used up its processor time (5 s)";
    assert!(told(&error).contains(words), "{}", told(&error));
    // What comes with the host needs no child.
    let ours = Plugins::built_in("paddle").unwrap();
    loaded(program, Bounds::default(), ours).await.unwrap();
}

#[tokio::test]
async fn a_child_gives_up_files_sockets_processes_and_time_before_it_reads() {
    for command in ["compile", "check-settings"] {
        gives_up(command).await;
    }
}

async fn gives_up(command: &str) {
    let mut child = Command::new(binary());
    child.args([command, "--cpu-seconds", "7", "--memory-bytes", "3000000000"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let limits = format!("/proc/{}/limits", child.id());
    let given_up = [
        ("cpu time", "7"),
        ("address space", "3000000000"),
        ("file size", "0"),
        ("core file size", "0"),
        ("processes", "0"),
        ("open files", "3"),
    ];
    let confined = || async {
        let limits = fs::read_to_string(&limits)?;
        let is_so = |(what, most): &(&str, &str)| {
            let line = limits.lines().find_map(|line| line.strip_prefix(&format!("Max {what} ")));
            line.and_then(|line| line.split_whitespace().next()) == Some(*most)
        };
        anyhow::Ok(given_up.iter().all(is_so).then_some(()))
    };
    until(Duration::from_secs(20), "limits of the child", confined).await.unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
