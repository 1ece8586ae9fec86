//! Components made by hand: what no compiler of a well-behaved language would make. Each is a correct plugin but for one
//! part, given as WebAssembly text.

/// Where what `describe` returns lies in the guest's memory.
const DESCRIPTION: u32 = 4096;

/// The section of a component that is a module.
const CORE_MODULE: u8 = 1;

/// A description, and room after it.
const DATA: u32 = 1024;

/// The component around a hand-made module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    /// As the contract has it.
    Plain,
    /// The same; the function `cabi_post_...#plan` is called when a plan was read.
    Clearing,
    /// Of a contract that is not made yet.
    NextVersion,
    /// Of a contract whose `describe` returns a text.
    OtherDescribe,
    /// Of a contract whose `judge` returns a text.
    OtherJudge,
}

impl Shell {
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Plain => include_bytes!(concat!(env!("OUT_DIR"), "/plain.wasm")),
            Self::Clearing => include_bytes!(concat!(env!("OUT_DIR"), "/clearing.wasm")),
            Self::NextVersion => include_bytes!(concat!(env!("OUT_DIR"), "/next-version.wasm")),
            Self::OtherDescribe => include_bytes!(concat!(env!("OUT_DIR"), "/other-describe.wasm")),
            Self::OtherJudge => include_bytes!(concat!(env!("OUT_DIR"), "/other-judge.wasm")),
        }
    }

    /// The component with this module in place of its own.
    fn around(self, module: &[u8]) -> Vec<u8> {
        const HEADER: usize = 8;
        let (mut wasm, mut rest) = (self.bytes()[..HEADER].to_vec(), &self.bytes()[HEADER..]);
        while let [id, more @ ..] = rest {
            let (length, content) = unleb(more);
            let replaced = *id == CORE_MODULE;
            let content_or_module = if replaced { module } else { &content[..length] };
            wasm.push(*id);
            wasm.extend(leb(content_or_module.len()));
            wasm.extend(content_or_module);
            rest = &content[length..];
        }
        wasm
    }
}

/// A plugin of the kind `HandmadeJob`. Each part is WebAssembly text.
#[derive(Debug, Clone)]
pub(crate) struct Handmade {
    /// Pages of memory.
    pub(crate) pages: u32,
    /// More definitions of the module, a start function for example.
    pub(crate) more: String,
    /// Bodies of functions that return the address of an answer.
    pub(crate) describe: String,
    pub(crate) plan: String,
    pub(crate) bind: String,
    pub(crate) judge: String,
    /// The body of the function that makes room for arguments.
    pub(crate) realloc: String,
    /// Bytes that are changed in the description: offset and value.
    pub(crate) changed: Vec<(usize, u8)>,
    /// What it is put into; `build.rs` makes them.
    pub(crate) shell: Shell,
    /// Another module beside it, with a memory of its own: its text.
    pub(crate) beside: Option<String>,
}

impl Default for Handmade {
    fn default() -> Self {
        let zeros = "i32.const 8192";
        Self {
            pages: 4,
            more: String::new(),
            describe: format!("i32.const {DESCRIPTION}"),
            plan: zeros.into(),
            bind: zeros.into(),
            judge: "i32.const 8448".into(),
            realloc: ALLOCATE.into(),
            changed: vec![],
            shell: Shell::Plain,
            beside: None,
        }
    }
}

/// Takes memory that is never given back, and grows it as it must.
const ALLOCATE: &str = "
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (if (i32.gt_u (global.get $heap) (i32.shl (memory.size) (i32.const 16)))
        (then (drop (memory.grow (i32.add (i32.shr_u (local.get 3) (i32.const 16)) (i32.const 1))))))
    local.get $at";

impl Handmade {
    /// The component.
    pub(crate) fn component(&self) -> Vec<u8> {
        const CORE_INSTANCE: u8 = 2;
        let mut wasm = self.shell.around(&wat::parse_str(self.module()).unwrap());
        if let Some(beside) = &self.beside {
            let module = wat::parse_str(beside).unwrap();
            // One instance of the second module, without arguments.
            for (id, content) in [(CORE_MODULE, &module[..]), (CORE_INSTANCE, &[1, 0, 1, 0])] {
                wasm.push(id);
                wasm.extend(leb(content.len()));
                wasm.extend(content);
            }
        }
        wasm
    }

    fn module(&self) -> String {
        let Self { pages, more, describe, plan, bind, judge, realloc, .. } = self;
        let version = if self.shell == Shell::NextVersion { "0.2.0" } else { "0.1.0" };
        let of = |function: &str| format!("troupe:framework/framework@{version}#{function}");
        let (describe_is, plan_is, bind_is, judge_is) = (of("describe"), of("plan"), of("bind"), of("judge"));
        let data: String = self.description().iter().map(|byte| format!("\\{byte:02x}")).collect();
        // A verdict with an empty object as its status. What follows the tag of the result begins at 8, as its time does.
        let verdict = "\\00\\00\\00\\00\\00\\00\\00\\00\\40\\21\\00\\00\\02\\00\\00\\00";
        format!(
            r#"(module
                (memory (export "memory") {pages})
                (global $heap (mut i32) (i32.const 65536))
                (data (i32.const {DESCRIPTION}) "{data}")
                (data (i32.const 8448) "{verdict}")
                (data (i32.const 8512) "{{}}")
                {more}
                (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
                (func (export "{describe_is}") (result i32) {describe})
                (func (export "{plan_is}") (param i32) (result i32) {plan})
                (func (export "{bind_is}") (param i32) (result i32) {bind})
                (func (export "{judge_is}") (param i32 i32 i32 i32 i32 i32) (result i32) {judge}))"#
        )
    }

    /// The record `descriptor` as it lies in memory, with its texts behind it.
    fn description(&self) -> Vec<u8> {
        let mut texts: Vec<u8> = vec![];
        let mut text = |text: &str| {
            let at = DESCRIPTION + DATA + u32::try_from(texts.len()).unwrap();
            texts.extend(text.as_bytes());
            [at, u32::try_from(text.len()).unwrap()]
        };
        let record = 68;
        let mut words: Vec<u32> = vec![];
        words.extend(text("handmade"));
        words.extend(text("0.0.1"));
        words.extend([DESCRIPTION + record, 1, 0, 0]);
        // Nothing to read.
        words.extend([0; 2]);
        // No gangs.
        words.push(0);
        words.extend(text("{}"));
        // No reasons of events.
        words.extend([0; 2]);
        words.extend(text("{}"));
        for part in ["example.org", "v1", "HandmadeJob", "handmadejobs"] {
            words.extend(text(part));
        }
        // No switches, no own manager, no finalizers, no roles.
        words.extend([0; 13]);
        words.extend(text("handmade"));
        // Queued by the host.
        words.push(0);
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.resize(DATA as usize, 0);
        bytes.extend(texts);
        self.changed.iter().for_each(|(at, value)| bytes[*at] = *value);
        bytes
    }
}

/// A component of these sections: id and content.
pub(crate) fn component(sections: &[(u8, &[u8])]) -> Vec<u8> {
    binary(b"\0asm\x0d\0\x01\0", sections)
}

/// A core module of these sections.
pub(crate) fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
    binary(b"\0asm\x01\0\0\0", sections)
}

fn binary(header: &[u8], sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut wasm = header.to_vec();
    for (id, content) in sections {
        wasm.push(*id);
        wasm.extend(leb(content.len()));
        wasm.extend(*content);
    }
    wasm
}

/// A number as WebAssembly has it.
pub(crate) fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = vec![];
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Such a number, and what comes after it.
fn unleb(bytes: &[u8]) -> (usize, &[u8]) {
    let length = 1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let number = bytes[..length].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    (number, &bytes[length..])
}
