//! The whole corpus of bad plugins, each with its fate, in one run: refused when it is loaded, or a typed fault of the
//! function that misbehaves. The host goes on after each of them.

use super::{
    guest,
    handmade::{Handmade, Shell, component, leb, module},
    job_of, judge, paddle_still_answers, plan, plugins,
};
use crate::operator::binary;
use decide::plan::Answer;
use sandbox::{Bounds, Compiler, Executor, Limits, LoadError, Options, Plugins};
use serde_json::json;
use std::error::Error;

/// What becomes of a bad plugin.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It is not loaded; the error says this.
    Refused(&'static str),
    /// It is loaded; this is the reason of the fault, the function, and what the message says.
    Faulted(&'static str, &'static str, &'static str),
}

use Fate::{Faulted, Refused};

struct Bad {
    name: &'static str,
    wasm: Vec<u8>,
    fate: Fate,
}

fn bad(name: &'static str, wasm: Vec<u8>, fate: Fate) -> Bad {
    Bad { name, wasm, fate }
}

/// A hand-made plugin with this change.
fn made(name: &'static str, fate: Fate, change: impl FnOnce(&mut Handmade)) -> Bad {
    let mut plugin = Handmade::default();
    change(&mut plugin);
    bad(name, plugin.component(), fate)
}

fn corpus() -> Vec<Bad> {
    let each = [what_runs_away(), what_falls(), what_answers_nonsense(), what_is_no_plugin(), what_is_too_much()];
    each.into_iter().flatten().collect()
}

const SPIN: &str = "(loop (br 0)) unreachable";
const OUT_OF_FUEL: Fate = Refused("ran out of fuel in describe");

/// What the plugin does when its plan was read.
fn after_plan(body: &str) -> String {
    format!(r#"(func (export "cabi_post_troupe:framework/framework@0.1.0#plan") (param i32) {body})"#)
}

/// Processor time, memory, stack.
fn what_runs_away() -> Vec<Bad> {
    let grow = "(func $grow (loop (br_if 0 (i32.ne (memory.grow (i32.const 64)) (i32.const -1)))))";
    let deeper = "(func $deeper (param i64) (result i64)
        (i64.add (call $deeper (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))";
    vec![
        made("it loops when it starts", OUT_OF_FUEL, |it| it.more = "(func $go (loop (br 0))) (start $go)".into()),
        made("it loops in describe", OUT_OF_FUEL, |it| it.describe = SPIN.into()),
        made("it loops in plan", Faulted("OutOfBudget", "plan", "fuel"), |it| it.plan = SPIN.into()),
        made("it loops in bind", Faulted("OutOfBudget", "bind", "fuel"), |it| it.bind = SPIN.into()),
        made("it loops in judge", Faulted("OutOfBudget", "judge", "fuel"), |it| it.judge = SPIN.into()),
        made("it loops when it makes room", Faulted("OutOfBudget", "plan", "fuel"), |it| it.realloc = SPIN.into()),
        made("it loops after its answer", Faulted("OutOfBudget", "plan", "fuel"), |it| {
            it.shell = Shell::Clearing;
            it.more = after_plan("(loop (br 0))");
        }),
        made("it grows when it starts", Refused("ran out of memory in describe"), |it| {
            it.more = format!("{grow} (start $grow)");
        }),
        made("it grows its memory", Faulted("OutOfBudget", "plan", "memory"), |it| {
            it.plan = "(drop (memory.grow (i32.const 65000))) i32.const 8192".into();
        }),
        made("it grows its memory beside another", Faulted("OutOfBudget", "plan", "memory"), |it| {
            it.beside = Some("(module (memory 1000))".into());
            it.plan = "(drop (memory.grow (i32.const 21))) i32.const 8192".into();
        }),
        made("what is beside it grows when it starts", Refused("ran out of memory in describe"), |it| {
            it.beside = Some(format!("(module (memory 0) {grow} (start $grow))"));
        }),
        made("it grows its table", Faulted("OutOfBudget", "plan", "memory"), |it| {
            it.more = "(table $t 1 funcref)".into();
            it.plan = "(drop (table.grow $t (ref.null func) (i32.const 10000000))) i32.const 8192".into();
        }),
        made("it allocates crumbs", Faulted("OutOfBudget", "plan", "memory"), |it| {
            let crumb = "(call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 4096))";
            it.plan = format!("(loop (drop {crumb}) (br 0)) unreachable");
        }),
        made("it recurses", Faulted("Trapped", "plan", "call stack exhausted"), |it| {
            it.more = deeper.into();
            it.plan = "(drop (call $deeper (i64.const 0))) i32.const 8192".into();
        }),
    ]
}

fn what_falls() -> Vec<Bad> {
    vec![
        made("it falls when it starts", Refused("unreachable"), |it| {
            it.more = "(func $go unreachable) (start $go)".into();
        }),
        made("it falls in describe", Refused("unreachable"), |it| it.describe = "unreachable".into()),
        made("it falls in plan", Faulted("Trapped", "plan", "unreachable"), |it| it.plan = "unreachable".into()),
        made("it falls in bind", Faulted("Trapped", "bind", "unreachable"), |it| it.bind = "unreachable".into()),
        made("it falls in judge", Faulted("Trapped", "judge", "unreachable"), |it| it.judge = "unreachable".into()),
        made("it divides by zero", Faulted("Trapped", "judge", "divide by zero"), |it| {
            it.judge = "(i32.div_u (i32.const 1) (i32.const 0))".into();
        }),
        made("it reads beyond its memory", Faulted("Trapped", "plan", "out of bounds memory access"), |it| {
            it.plan = "(i32.load (i32.const -4))".into();
        }),
        made("it calls what is not there", Faulted("Trapped", "plan", "uninitialized element"), |it| {
            it.more = "(table $t 1 funcref) (type $f (func))".into();
            it.plan = "(call_indirect $t (type $f) (i32.const 0)) i32.const 8192".into();
        }),
        made("it falls after its answer", Faulted("Trapped", "plan", "unreachable"), |it| {
            it.shell = Shell::Clearing;
            it.more = after_plan("unreachable");
        }),
    ]
}

/// Answers that no well-behaved language would give.
fn what_answers_nonsense() -> Vec<Bad> {
    let store = |at: u32, value: i64| format!("(i32.store (i32.const {at}) (i32.const {value}))");
    let roles = |ptr: i64, len: i64| format!("{} {} i32.const 8192", store(8196, ptr), store(8200, len));
    let too_large = Faulted("UnacceptableAnswer", "plan", "it is larger than 1048576 bytes");
    vec![
        made("neither an answer nor a refusal", Faulted("Trapped", "plan", "discriminant"), |it| {
            it.plan = format!("{} i32.const 8192", store(8192, 9));
        }),
        made("an outcome that there is not", Faulted("Trapped", "judge", "discriminant"), |it| {
            it.judge = format!("{} i32.const 8448", store(8472, 7));
        }),
        made("an option that is neither", Refused("discriminant"), |it| it.changed = vec![(124, 2)]),
        made("a name that is no UTF-8", Refused("utf-8"), |it| it.changed = vec![(1024, 0xff)]),
        made("half a surrogate pair", Refused("utf-8"), |it| {
            it.changed = vec![(1024, 0xed), (1025, 0xa0), (1026, 0x80)];
        }),
        made("a name that is empty", Refused("is no DNS label"), |it| it.changed = vec![(4, 0)]),
        made("an answer beyond its memory", Faulted("Trapped", "plan", "out of bounds"), |it| {
            it.plan = "i32.const 0x7ffffff0".into();
        }),
        made("an answer that is not aligned", Faulted("Trapped", "plan", "aligned"), |it| {
            it.plan = "i32.const 8193".into();
        }),
        made("a list beyond its memory", Faulted("Trapped", "plan", "out of bounds"), |it| {
            it.plan = roles(65536, 0x000f_ffff);
        }),
        made("a list longer than an address", Faulted("Trapped", "plan", "out of bounds"), |it| it.plan = roles(8, -1)),
        made("a text beyond its memory", Faulted("Trapped", "judge", "out of bounds"), |it| {
            it.judge = format!("{} i32.const 8448", store(8460, 0x7fff_ffff));
        }),
        made("a million warnings", too_large, |it| {
            it.pages = 512;
            it.plan = format!("{} {} i32.const 8192", store(8328, 1 << 20), store(8332, 1_000_000));
        }),
        made("a hundred thousand roles", too_large, |it| {
            it.pages = 512;
            it.plan = roles(1 << 20, 100_000);
        }),
        made("room beyond its memory", Faulted("Trapped", "plan", "realloc"), |it| it.realloc = "i32.const -8".into()),
        made("room that is not aligned", Faulted("Trapped", "plan", "aligned"), |it| {
            it.realloc = "i32.const 65537".into();
        }),
    ]
}

/// Files that are something else.
fn what_is_no_plugin() -> Vec<Bad> {
    let mut half = guest("");
    half.truncate(half.len() / 2);
    let memory = |of: &[u8]| component(&[(1, &module(&[(5, of)]))]);
    let wanted = Refused("the host wants troupe:framework/framework@0.1.0");
    vec![
        bad("nothing", vec![], Refused("no WebAssembly at all")),
        bad("a script", b"#!/bin/sh\n".to_vec(), Refused("no WebAssembly at all")),
        bad("a core module", module(&[]), Refused("a core module")),
        bad("a section without an end", b"\0asm\x0d\0\x01\0\xff\xff".to_vec(), Refused("failed to compile")),
        bad("half a plugin", half, Refused("failed to compile")),
        bad("a component of nothing", component(&[]), wanted),
        made(
            "another version of the contract",
            Refused("exports troupe:framework/framework@0.2.0; the host wants"),
            |it| {
                it.shell = Shell::NextVersion;
            },
        ),
        made("another type of describe", Refused("cannot describe itself"), |it| {
            it.shell = Shell::OtherDescribe;
        }),
        // Its type is checked when it is loaded, and not when it is first called.
        made("another type of judge", Refused("cannot describe itself"), |it| it.shell = Shell::OtherJudge),
        bad(
            "Secrets by the name of another kind",
            guest("describe-secrets"),
            Refused("the plural of ConfigMap of v1 is configmaps, not secrets"),
        ),
        bad("sockets", guest("sockets"), Refused("imports wasi:sockets/")),
        bad("memory64", memory(&[1, 4, 1]), Refused("failed to compile")),
        bad("threads", memory(&[1, 3, 1, 1]), Refused("failed to compile")),
        bad("pages of another size", memory(&[1, 8, 1, 0]), Refused("failed to compile")),
    ]
}

/// Two components within one, each with a memory. An engine that has one memory a module panics at the code between them.
const TWO_MEMORIES: &str = r#"(component
    (component $to
        (core module $m
            (memory (export "memory") 1)
            (func (export "take") (param i32 i32))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (func (export "take") (param "text" string)
            (canon lift (core func $i "take") (memory $i "memory") (realloc (func $i "realloc")))))
    (component $from
        (import "take" (func $take (param "text" string)))
        (core module $m (memory (export "memory") 1))
        (core instance $i (instantiate $m))
        (core func $lowered (canon lower (func $take) (memory $i "memory")))
        (core module $calls (import "" "take" (func (param i32 i32))))
        (core instance (instantiate $calls (with "" (instance (export "take" (func $lowered)))))))
    (instance $to (instantiate $to))
    (instance (instantiate $from (with "take" (func $to "take")))))"#;

/// More of something than a plugin needs.
fn what_is_too_much() -> Vec<Bad> {
    let of_module = |sections: &[(u8, &[u8])]| component(&[(1, &module(sections))]);
    let many = |count: usize, each: &[u8]| [leb(count), each.repeat(count)].concat();
    let no_type: &[u8] = &[1, 0x60, 0, 0];
    let functions = of_module(&[(1, no_type), (3, &many(100_000, &[0])), (10, &many(100_000, &[2, 0, 0x0b]))]);
    let body = [&[0][..], &vec![1; 7_000_000], &[0x0b]].concat();
    let one_body = [leb(1), leb(body.len()), body].concat();
    let nested = (0..100).fold(component(&[]), |inner, _| component(&[(4, &inner)]));
    let small = module(&[]);
    let modules: Vec<(u8, &[u8])> = vec![(1, small.as_slice()); 80];
    let notes: Vec<(u8, &[u8])> = vec![(0, b"\x04note".as_slice()); 300];
    vec![
        bad(
            "30 MB",
            of_module(&[(0, &[&b"\x04note"[..], &vec![0; 30 << 20]].concat())]),
            Refused("more than 16777216"),
        ),
        bad("100,000 functions", functions, Refused("100000 functions, more than 50000")),
        bad(
            "7 MB in one function",
            of_module(&[(1, no_type), (3, &[1, 0]), (10, &one_body)]),
            Refused("in one function"),
        ),
        bad("components within components", nested, Refused("components within each other")),
        bad("three memories", of_module(&[(5, &[3, 0, 1, 0, 1, 0, 1])]), Refused("3 memories, more than 2")),
        bad(
            "two memories in one module",
            of_module(&[(5, &[2, 0, 1, 0, 1])]),
            Refused("memories count of 2 exceeds the per-instance limit of 1"),
        ),
        bad(
            "a text that passes from one memory into another",
            wat::parse_str(TWO_MEMORIES).unwrap(),
            Refused("the component exports nothing"),
        ),
        bad("eighty modules", component(&modules), Refused("65 modules, more than 64")),
        bad("notes", component(&notes), Refused("257 custom sections, more than 256")),
        bad("globals", of_module(&[(6, &many(300_000, &[0x7f, 0, 0x41, 0, 0x0b]))]), Refused("300000 definitions")),
        made("more memory than there is room for", Refused("memory"), |it| it.pages = 1025),
        made("two memories for which there is no room together", Refused("ran out of memory in describe"), |it| {
            it.beside = Some("(module (memory 1021))".into());
        }),
        made("a larger table than there is room for", Refused("table"), |it| it.more = "(table 20000 funcref)".into()),
    ]
}

/// An error with all its causes.
pub(super) fn told(error: &LoadError) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// Plugins with less fuel than usual, compiled like this.
pub(super) fn empty(compiler: Compiler) -> Plugins {
    let limits = Limits { fuel: 20_000_000, ..Limits::default() };
    Plugins::empty(Options { limits, compiler, ..Options::new(Executor::Inline) }).unwrap()
}

/// A whole pass over a job of the plugin `handmade`.
pub(super) fn handmade_pass(plugins: &Plugins) -> Answer {
    let snapshot = job_of(plugins, "handmade", json!({}));
    match plan(plugins, &snapshot) {
        Ok(plan) => judge(plugins, &snapshot, &plan, &[]),
        Err(no_plan) => no_plan.into(),
    }
}

/// What happened to a bad plugin instead of what should.
fn strayed(bad: &Bad, compiler: &Compiler) -> Option<String> {
    let plugins = empty(compiler.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let loaded = runtime.block_on(plugins.load_foreign("it", &bad.wasm));
    let (met, told) = match (bad.fate, loaded) {
        (Refused(words), Err(error)) => {
            let told = told(&error);
            (told.contains(words) && plugins.frameworks().is_empty(), told)
        }
        (Faulted(reason, function, words), Ok(_)) => match handmade_pass(&plugins) {
            Answer::Faulted(fault) => {
                let told = fault.to_string();
                let here = told.contains(&format!(" in {function}"));
                (fault.reason().as_str() == reason && here && told.contains(words), told)
            }
            answer => (false, format!("{answer:?}")),
        },
        (_, loaded) => (false, format!("loaded: {:?}", loaded.map_err(|error| told(&error)))),
    };
    (!met).then(|| format!("{}: {:?} was expected: {told}", bad.name, bad.fate))
}

#[test]
fn the_hand_made_plugin_is_a_good_one_but_for_one_part() {
    let plugins = empty(Compiler::InProcess);
    plugins.load("it", &Handmade::default().component()).unwrap();
    let answer = handmade_pass(&plugins);
    assert!(matches!(&answer, Answer::Judged { verdict, .. } if verdict.status == json!({})), "{answer:?}");
}

// QuickJS has an empty one.
#[test]
fn a_second_memory_within_the_limit_is_as_good_as_none() {
    for beside in ["(module (memory 0))", "(module (memory 1000))"] {
        let plugins = empty(Compiler::InProcess);
        plugins.load("it", &Handmade { beside: Some(beside.into()), ..Handmade::default() }.component()).unwrap();
        let answer = handmade_pass(&plugins);
        assert!(matches!(&answer, Answer::Judged { .. }), "{beside}: {answer:?}");
    }
}

#[test]
fn every_bad_plugin_meets_its_fate_and_the_host_goes_on() {
    let (corpus, others) = (corpus(), plugins());
    assert!(corpus.len() >= 50, "{}", corpus.len());
    let strayed: Vec<_> = corpus
        .iter()
        .filter_map(|bad| {
            let strayed = strayed(bad, &Compiler::InProcess);
            paddle_still_answers(&others);
            strayed
        })
        .collect();
    assert!(strayed.is_empty(), "{strayed:#?}");
}

#[test]
fn every_bad_plugin_meets_the_same_fate_when_a_child_compiles_it() {
    let compiler = Compiler::Child { program: binary().to_owned(), bounds: Bounds::default() };
    let strayed: Vec<_> = corpus().iter().filter_map(|bad| strayed(bad, &compiler)).collect();
    assert!(strayed.is_empty(), "{strayed:#?}");
}

#[test]
fn components_with_wrong_bytes_never_bring_the_host_down() {
    let good = Handmade::default().component();
    let mut chance = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        usize::try_from(chance % below as u64).unwrap()
    };
    let (mut refused, mut served) = (0, 0);
    for _ in 0..300 {
        let mut wasm = good.clone();
        for _ in 0..=draw(4) {
            let at = 8 + draw(wasm.len() - 8);
            wasm[at] = u8::try_from(draw(256)).unwrap();
        }
        let plugins = empty(Compiler::InProcess);
        match plugins.load("it", &wasm) {
            Err(_) => refused += 1,
            Ok(_) => {
                let (framework, _) = plugins.frameworks().remove(0);
                let snapshot = job_of(&plugins, &framework.name, json!({}));
                if let Ok(plan) = plan(&plugins, &snapshot) {
                    drop(judge(&plugins, &snapshot, &plan, &[]));
                }
                served += 1;
            }
        }
    }
    paddle_still_answers(&plugins());
    assert!(refused > 0 && served > 0, "{refused} refused, {served} served");
}
