//! Recent passes that wrote something, for people and for replay: the latest passes uncompressed, older passes compressed.
//! They contain no Secret data, since the host watches no Secrets.

use decide::{
    Decision, Outlook, Snapshot, decide,
    plan::{Answer, Rejection},
    vet, weight,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    vec,
};
use tracing::error;

/// What the admin port puts in place of a value that it leaves out of a pass.
pub const REDACTED: &str = "REDACTED";

/// Compressed passes take at most this much memory, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// At most this many compressed passes are kept.
const MOST: usize = 4_000;

/// At most this many passes are compressed together, fewer if their estimated size reaches the second limit.
const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 2 << 20;

/// At most this many blocks wait to be compressed: the oldest go where readers have the thread that does it for long.
const MOST_WHOLE: usize = 4;

/// The fastest level: passes are so alike that a better level gains little.
const LEVEL: i32 = 1;

/// One pass, as the admin port returns it: enough to ask the plugin again and to decide again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    /// The plugin's name. Its digest is in the snapshot.
    #[serde(default)]
    pub plugin: String,
    /// The plugin's settings, as the plugin gets them.
    #[serde(default = "no_settings")]
    pub config: String,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The outlook of the host's own rules, if the plugin had a plan.
    pub outlook: Option<Outlook>,
    /// The plugin's answer.
    pub answer: Answer,
    /// The decision.
    pub decision: Decision,
}

impl Pass {
    /// Returns the pass of a text of JSON.
    ///
    /// # Errors
    /// If the text is no pass, or its plan is larger than a host takes: deciding about it would take all memory.
    // Not generic, so that its types are compiled once and not by each caller.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let pass: Self = serde_json::from_str(text)?;
        if let Answer::Judged { plan, .. } = &pass.answer {
            let too_large = |error: Rejection| de::Error::custom(format_args!("answer: plan: {error}"));
            vet::size(plan).map_err(too_large)?;
        }
        Ok(pass)
    }
}

fn no_settings() -> String {
    "{}".to_owned()
}

/// One pass as it is kept, without the decision, which follows from the rest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedPass {
    /// The plugin's name; empty if none was asked.
    pub plugin: String,
    pub(crate) config: String,
    /// The snapshot.
    pub snapshot: Snapshot,
    pub(crate) outlook: Option<Outlook>,
    /// The plugin's answer.
    pub answer: Answer,
}

impl RecordedPass {
    /// Returns the whole pass, with the decision that follows from it.
    #[must_use]
    pub fn decided(self) -> Pass {
        let decision = decide(&self.snapshot, &self.answer);
        self.with(decision)
    }

    /// Returns the whole pass with this decision.
    pub(crate) fn with(self, decision: Decision) -> Pass {
        let Self { plugin, config, snapshot, outlook, answer } = self;
        Pass { plugin, config, snapshot, outlook, answer, decision }
    }

    fn weight(&self) -> usize {
        512 + self.config.len() + weight::snapshot(&self.snapshot) + weight::answer(&self.answer)
    }
}

/// Recent passes.
#[derive(Debug, Default)]
pub struct Passes {
    kept: Arc<Mutex<Kept>>,
}

/// A block of passes that has to be compressed.
#[must_use = "passes that are not compressed take much memory"]
pub(crate) struct FullBlock {
    number: u64,
    kept: Arc<Mutex<Kept>>,
}

impl FullBlock {
    /// Compresses the passes, if they are still kept, while others are recorded and read.
    pub(crate) fn compress(self) {
        let block = self.kept.lock().blocks.get(&self.number).cloned();
        if let Some(Block::Whole(passes)) = block {
            let block = Compressed::of(&passes);
            self.kept.lock().put(self.number, block);
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    /// The latest passes, the oldest first.
    fresh: Vec<Arc<RecordedPass>>,
    fresh_bytes: usize,
    /// Older passes, the oldest first, by a number of their own.
    blocks: BTreeMap<u64, Block>,
    /// The number of blocks that there have been.
    made: u64,
}

/// Passes that are compressed together; clones share them.
#[derive(Debug, Clone)]
enum Block {
    /// They are being compressed.
    Whole(Arc<[Arc<RecordedPass>]>),
    Compressed(Arc<Compressed>),
}

/// Passes as lines of JSON, compressed together.
#[derive(Debug)]
struct Compressed {
    lines: Box<[u8]>,
    passes: usize,
}

impl Block {
    fn passes(&self) -> usize {
        match self {
            Self::Whole(passes) => passes.len(),
            Self::Compressed(block) => block.passes,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Whole(_) => 0,
            Self::Compressed(block) => block.lines.len(),
        }
    }

    fn read(&self) -> Vec<RecordedPass> {
        match self {
            Self::Whole(passes) => passes.iter().map(|pass| RecordedPass::clone(pass)).collect(),
            Self::Compressed(block) => block.read(),
        }
    }
}

impl Compressed {
    fn of(passes: &[Arc<RecordedPass>]) -> Self {
        let mut lines = Vec::new();
        for pass in passes {
            serde_json::to_writer(&mut lines, &**pass).expect("its keys are text, and a vector takes all of it");
            lines.push(b'\n');
        }
        let lines = zstd::bulk::compress(&lines, LEVEL).expect("there is room for what is compressed");
        // Boxed: the vector has capacity for incompressible data.
        Self { lines: lines.into(), passes: passes.len() }
    }

    /// Returns the passes of the block. If the block cannot be read, logs that and returns none.
    fn read(&self) -> Vec<RecordedPass> {
        let read = || -> Result<Vec<RecordedPass>, Box<dyn std::error::Error>> {
            let lines = zstd::decode_all(&*self.lines)?;
            Ok(std::str::from_utf8(&lines)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
        };
        read().unwrap_or_else(|broken| {
            error!(%broken, passes = self.passes, "recorded passes cannot be read");
            vec![]
        })
    }
}

impl Kept {
    /// Adds a pass. Returns the number of the block that is full with it.
    fn push(&mut self, weight: usize, pass: Arc<RecordedPass>) -> Option<u64> {
        self.fresh.push(pass);
        self.fresh_bytes += weight;
        if self.fresh.len() < BLOCK && self.fresh_bytes < BLOCK_BYTES {
            return None;
        }
        let full = self.fresh.drain(..).collect();
        self.fresh_bytes = 0;
        self.made += 1;
        self.blocks.insert(self.made, Block::Whole(full));
        let whole = self.blocks.iter().filter(|(_, block)| matches!(block, Block::Whole(_)));
        let oldest = whole.map(|(number, _)| *number).nth_back(MOST_WHOLE);
        oldest.and_then(|number| self.blocks.remove(&number));
        Some(self.made)
    }

    /// Puts the compressed block into its place, if it has that still, and drops the oldest ones that are too many.
    fn put(&mut self, number: u64, block: Compressed) {
        if let Some(whole) = self.blocks.get_mut(&number) {
            *whole = Block::Compressed(block.into());
        }
        while self.bytes() > MOST_BYTES || self.passes() > MOST {
            self.blocks.pop_first();
        }
    }

    fn bytes(&self) -> usize {
        self.blocks.values().map(Block::bytes).sum()
    }

    fn passes(&self) -> usize {
        self.blocks.values().map(Block::passes).sum()
    }
}

impl Passes {
    /// Adds a pass as the latest. Returns the block that is full with it and has to be compressed.
    pub(crate) fn record(&self, pass: Arc<RecordedPass>) -> Option<FullBlock> {
        let weight = pass.weight();
        let number = self.kept.lock().push(weight, pass)?;
        Some(FullBlock { number, kept: Arc::clone(&self.kept) })
    }

    /// Returns the latest passes of all jobs, the oldest first.
    #[must_use]
    pub fn latest(&self) -> Latest {
        let kept = self.kept.lock();
        Latest {
            blocks: kept.blocks.values().cloned().collect(),
            read: vec![].into_iter(),
            fresh: kept.fresh.clone().into(),
        }
    }

    /// Returns the latest passes that are not compressed yet, the oldest first. The last pass is among them, unless it
    /// filled a block.
    pub fn fresh(&self) -> Vec<Arc<RecordedPass>> {
        self.kept.lock().fresh.clone()
    }
}

/// Recent passes, decompressed a block at a time while they are read: long work, and not for the threads of passes.
#[derive(Debug, Clone, Default)]
pub struct Latest {
    blocks: VecDeque<Block>,
    read: vec::IntoIter<RecordedPass>,
    fresh: VecDeque<Arc<RecordedPass>>,
}

impl Iterator for Latest {
    type Item = RecordedPass;

    fn next(&mut self) -> Option<RecordedPass> {
        loop {
            if let Some(pass) = self.read.next() {
                return Some(pass);
            }
            match self.blocks.pop_front() {
                Some(block) => self.read = block.read().into_iter(),
                None => return self.fresh.pop_front().map(Arc::unwrap_or_clone),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::{
        plan::{Bindings, Outcome, Verdict},
        snapshot::Job,
        testkit,
    };
    use rand_chacha::{
        ChaCha20Rng,
        rand_core::{RngCore, SeedableRng},
    };
    use serde_json::json;

    fn noted(plugin: &str, name: &str, text: &str) -> Arc<RecordedPass> {
        let snapshot = testkit::snapshot(Job { spec: json!({ "text": text }), ..testkit::job(name, "u") });
        let answer = Answer::Rejected(Rejection::Unsupported("tales".into()));
        Arc::new(RecordedPass { plugin: plugin.into(), config: "{}".into(), snapshot, outlook: None, answer })
    }

    fn names(passes: Latest) -> Vec<String> {
        passes.map(|pass| pass.snapshot.job.name.clone()).collect()
    }

    /// Returns passes named by their numbers.
    fn passes(count: usize) -> Passes {
        let passes = Passes::default();
        for number in 0..count {
            record(&passes, noted("a", &number.to_string(), ""));
        }
        passes
    }

    fn record(passes: &Passes, pass: Arc<RecordedPass>) {
        passes.record(pass).into_iter().for_each(FullBlock::compress);
    }

    #[test]
    fn blocks_that_nobody_compresses_in_time_are_few_and_the_latest() {
        let passes = Passes::default();
        let record = |number: usize| passes.record(noted("a", &number.to_string(), ""));
        let waiting: Vec<_> = (0..(MOST_WHOLE + 2) * BLOCK).filter_map(record).collect();
        let kept = names(passes.latest());
        assert_eq!((kept.len(), kept[0].as_str()), (MOST_WHOLE * BLOCK, "64"));
        waiting.into_iter().for_each(FullBlock::compress);
        assert_eq!(names(passes.latest()), kept, "a block that is gone does not come back");
        assert!(passes.kept.lock().blocks.values().all(|block| matches!(block, Block::Compressed(_))));
    }

    #[test]
    fn a_pass_whose_plan_no_host_takes_is_not_read() {
        let snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        let plan = |replicas| {
            testkit::plan(vec![testkit::role("actor", replicas, testkit::text(&["JOB", "-", "INDEX"]), json!({}))])
        };
        let read = |replicas| {
            let answer = Answer::Judged {
                plan: plan(replicas).into(),
                bindings: Bindings::default(),
                verdict: Verdict::new(json!({}), "Running", Outcome::Open),
            };
            let rejected = Answer::Rejected(Rejection::Unsupported("tales".into()));
            let decision = decide(&snapshot, &rejected);
            let pass = Pass {
                plugin: "p".into(),
                config: "{}".into(),
                snapshot: snapshot.clone(),
                outlook: None,
                answer,
                decision,
            };
            Pass::from_json(&serde_json::to_string(&pass).unwrap()).map(drop)
        };
        read(10_000).unwrap();
        let error = read(u32::MAX).unwrap_err().to_string();
        assert!(
            error.contains("answer: plan: 4294967295 replicas (4294967295 of actor) are more than 10000"),
            "{error}"
        );
    }

    #[test]
    fn the_latest_passes_are_those_of_all_jobs_compressed_or_not() {
        let count = 2 * BLOCK + 3;
        let passes = passes(count);
        assert_eq!(passes.fresh().len(), 3);
        assert_eq!(names(passes.latest()), (0..count).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn passes_that_are_being_compressed_are_there_and_others_are_recorded_meanwhile() {
        let passes = passes(BLOCK - 1);
        let full = passes.record(noted("a", "last", "")).unwrap();
        record(&passes, noted("a", "later", ""));
        let before = names(passes.latest());
        assert_eq!((before.len(), before.last().map(String::as_str)), (BLOCK + 1, Some("later")));
        full.compress();
        assert_eq!(names(passes.latest()), before);
    }

    #[test]
    fn the_oldest_passes_go_when_the_places_run_out() {
        let passes = passes(MOST + 2 * BLOCK);
        let kept = names(passes.latest());
        assert!(kept.len() <= MOST && kept.len() > MOST - BLOCK, "{}", kept.len());
        assert_eq!(kept.last(), Some(&(MOST + 2 * BLOCK - 1).to_string()));
    }

    #[test]
    fn the_oldest_passes_go_when_the_bytes_run_out() {
        let passes = Passes::default();
        let mut random = ChaCha20Rng::seed_from_u64(1);
        for number in 0..40 {
            let text: String = (0..64 << 10).map(|_| format!("{:08x}", random.next_u32())).collect();
            record(&passes, noted("a", &number.to_string(), &text));
        }
        let kept = names(passes.latest());
        assert!(passes.kept.lock().bytes() <= MOST_BYTES);
        assert!(kept.len() >= 20 && kept.len() < 40, "{}", kept.len());
        assert_eq!(kept.last().map(String::as_str), Some("39"));
    }

    #[test]
    fn many_passes_that_are_alike_take_little_room() {
        let passes = Passes::default();
        for number in 0..BLOCK {
            record(&passes, noted("a", &number.to_string(), &"a word or two of a spec, ".repeat(200)));
        }
        assert!(passes.kept.lock().bytes() < BLOCK * 200, "{}", passes.kept.lock().bytes());
    }

    #[test]
    fn a_whole_pass_says_what_was_decided_and_reads_back() {
        let whole = Arc::unwrap_or_clone(noted("a", "one", "")).decided();
        let text = serde_json::to_string(&whole).unwrap();
        let read: Pass = serde_json::from_str(&text).unwrap();
        assert_eq!(read.decision, decide(&read.snapshot, &read.answer));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
