//! What a RhinoJob must be before anything is made of it: all mistakes at once, each with its field.

use crate::{Job, launcher, plan, workers};
use troupe_plugin::{
    MAX_REPLICAS,
    types::{FieldError, Refusal},
};

/// The longest DNS label.
const MAX_LABEL: usize = 63;

/// A job that is as it must be, with the defaults filled in.
#[derive(Debug, PartialEq)]
pub(crate) struct Valid<'a> {
    pub(crate) image: &'a str,
    pub(crate) app_exec: &'a str,
    pub(crate) app_args: &'a [String],
    pub(crate) parallelism: u32,
    /// 0 is never.
    pub(crate) ttl: u32,
    pub(crate) data: Data<'a>,
    pub(crate) memory: Memory,
}

/// The NFS directory that the workers share.
#[derive(Debug, PartialEq)]
pub(crate) enum Data<'a> {
    None,
    /// Server or path alone: as good as none.
    Half,
    Nfs {
        server: &'a str,
        path: &'a str,
    },
}

/// `memoryAllocationMode` with its size in GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Total(u32),
    PerCore(u32),
}

/// The job with its defaults, or everything that is wrong with it.
pub(crate) fn validate(job: &Job) -> Result<Valid<'_>, Refusal> {
    let mut wrong = Mistakes(vec![]);
    let spec = &job.spec;
    let valid = Valid {
        image: wrong.image(spec.image.as_ref()),
        app_exec: wrong.given("spec.appExec", spec.app_exec.as_ref(), "must be the path of a program in the image"),
        app_args: spec.app_args.as_deref().unwrap_or_default(),
        parallelism: wrong.parallelism(spec.parallelism.unwrap_or(1)),
        ttl: wrong.at_least("spec.ttl", 0, spec.ttl.unwrap_or(600)),
        data: wrong.data(spec.data_server.as_deref(), spec.data_path.as_deref()),
        memory: wrong.memory(job),
    };
    wrong.name(job, valid.parallelism);
    if wrong.0.is_empty() { Ok(valid) } else { Err(Refusal::Invalid(wrong.0)) }
}

struct Mistakes(Vec<FieldError>);

impl Mistakes {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        self.0.push(FieldError { path: path.to_owned(), message: message.into() });
    }

    fn given<'a>(&mut self, path: &str, text: Option<&'a String>, right: &str) -> &'a str {
        let text = text.map(String::as_str).unwrap_or_default();
        if text.trim_ascii().is_empty() {
            self.add(path, right);
        }
        text
    }

    fn image<'a>(&mut self, image: Option<&'a String>) -> &'a str {
        let right = "must be the image of launcher and workers";
        let image = self.given("spec.image", image, right);
        if !image.trim_ascii().is_empty() && image.bytes().any(|byte| byte.is_ascii_whitespace()) {
            self.add("spec.image", right);
        }
        image
    }

    fn data<'a>(&mut self, server: Option<&'a str>, path: Option<&'a str>) -> Data<'a> {
        let (server, path) = (server.unwrap_or_default(), path.unwrap_or_default());
        if server.bytes().any(|byte| byte.is_ascii_whitespace()) {
            self.add("spec.dataServer", "must be the name of a host");
        }
        if !path.is_empty() && !path.starts_with('/') {
            self.add("spec.dataPath", "must be an absolute path");
        }
        match (server, path) {
            ("", "") => Data::None,
            ("", _) | (_, "") => Data::Half,
            (server, path) => Data::Nfs { server, path },
        }
    }

    /// The workers' hosts must fit into one argument of a process, their names into the status: the host's limit is ours.
    fn parallelism(&mut self, many: i64) -> u32 {
        if many > i64::from(MAX_REPLICAS) {
            self.add("spec.parallelism", format!("must be at most {MAX_REPLICAS}, not {many}"));
        } else if many < 1 {
            self.add("spec.parallelism", "must be greater than or equal to 1");
        }
        u32::try_from(many.clamp(1, i64::from(MAX_REPLICAS))).unwrap_or(1)
    }

    fn at_least(&mut self, path: &str, least: u32, value: i32) -> u32 {
        let value = u32::try_from(value).ok().filter(|value| *value >= least);
        if value.is_none() {
            self.add(path, format!("must be greater than or equal to {least}"));
        }
        value.unwrap_or(least)
    }

    fn memory(&mut self, job: &Job) -> Memory {
        let size = self.at_least("spec.memoryAllocationSize", 1, job.spec.memory_allocation_size.unwrap_or(2));
        match job.spec.memory_allocation_mode.as_deref() {
            Some("FixedTotalMemory") => Memory::Total(size),
            Some("FixedPerCoreMemory") | None => Memory::PerCore(size),
            Some(other) => {
                let supported = "supported values: FixedTotalMemory, FixedPerCoreMemory";
                self.add("spec.memoryAllocationMode", format!("{other:?} is not supported; {supported}"));
                Memory::PerCore(size)
            }
        }
    }

    /// The longest names made of the job's are its launcher's Job and the host name of its last worker, which
    /// Kubernetes makes of the workers' Job.
    fn name(&mut self, job: &Job, parallelism: u32) {
        let last_host = format!("{}-{}", plan::name_of_job(job, workers::ROLE), parallelism - 1);
        for name in [plan::name_of_job(job, launcher::ROLE), last_host] {
            let label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            if name.len() > MAX_LABEL {
                let most = MAX_LABEL.saturating_sub(name.len() - job.name().len());
                let message =
                    format!("must be no more than {most} characters, for {name:?} to be no more than {MAX_LABEL}");
                return self.add("metadata.name", message);
            }
            if !name.bytes().all(label) || name.starts_with('-') {
                let may = "may only have lower case letters, digits and '-', and not begin with '-'";
                return self.add("metadata.name", format!("{may}: it becomes part of {name:?}, a DNS label"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, sample};
    use serde_json::{Value, json};

    fn mistakes(job: &Job) -> Vec<(String, String)> {
        match validate(job) {
            Err(Refusal::Invalid(errors)) => errors.into_iter().map(|e| (e.path, e.message)).collect(),
            other => panic!("not refused: {other:?}"),
        }
    }

    fn only_mistake(job: &Job) -> (String, String) {
        let all = mistakes(job);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    fn sample_with(field: &str, value: Value) -> Job {
        let mut spec = sample();
        spec[field] = value;
        job("sample", &spec)
    }

    // R01, R03: what is left out, and what a v1alpha1 object therefore means
    #[test]
    fn what_is_left_out_has_the_originals_defaults() {
        let job = job("sample", &json!({ "image": "i", "appExec": "./mpi-func" }));
        let expected = Valid {
            image: "i",
            app_exec: "./mpi-func",
            app_args: &[],
            parallelism: 1,
            ttl: 600,
            data: Data::None,
            memory: Memory::PerCore(2),
        };
        assert_eq!(validate(&job).unwrap(), expected);
    }

    // Better: the original checks nothing
    #[test]
    fn each_wrong_field_is_named() {
        let one = "must be greater than or equal to 1";
        let modes = "\"Fixed\" is not supported; supported values: FixedTotalMemory, FixedPerCoreMemory";
        let cases = [
            ("image", json!(null), "must be the image of launcher and workers"),
            ("image", json!(""), "must be the image of launcher and workers"),
            ("appExec", json!(null), "must be the path of a program in the image"),
            ("parallelism", json!(0), one),
            ("parallelism", json!(-2), one),
            ("ttl", json!(-1), "must be greater than or equal to 0"),
            ("memoryAllocationMode", json!("Fixed"), modes),
            ("memoryAllocationSize", json!(0), one),
        ];
        for (field, value, message) in cases {
            assert_eq!(only_mistake(&sample_with(field, value)), (format!("spec.{field}"), message.into()), "{field}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let spec = json!({ "parallelism": 0, "ttl": -1, "memoryAllocationMode": "", "memoryAllocationSize": -1 });
        let paths: Vec<_> = mistakes(&job("my.job", &spec)).into_iter().map(|(path, _)| path).collect();
        let expected = [
            "spec.image",
            "spec.appExec",
            "spec.parallelism",
            "spec.ttl",
            "spec.memoryAllocationSize",
            "spec.memoryAllocationMode",
            "metadata.name",
        ];
        assert_eq!(paths, expected);
    }

    // Better: too long a name is reported. The host name of the last worker is the longest, longer than the launcher's Job.
    #[test]
    fn a_name_may_be_as_long_as_the_last_workers_host_name_allows() {
        for (parallelism, most) in [(1, 47), (10, 47), (11, 46), (1001, 44)] {
            let mut spec = sample();
            spec["parallelism"] = json!(parallelism);
            assert!(validate(&job(&"a".repeat(most), &spec)).is_ok(), "{parallelism}");
            let (path, message) = only_mistake(&job(&"a".repeat(most + 1), &spec));
            assert_eq!(path, "metadata.name");
            assert!(message.starts_with(&format!("must be no more than {most} characters")), "{message}");
        }
    }

    // Better: one with a dot, of which the API server would refuse the workers' Job. One with a leading digit works in
    // the original, and here.
    #[test]
    fn a_name_that_is_no_label_is_refused() {
        for name in ["my.job", "-job", "Job"] {
            let (path, message) = only_mistake(&job(name, &sample()));
            assert_eq!(path, "metadata.name");
            assert!(message.starts_with("may only have lower case letters"), "{message}");
        }
        assert!(validate(&job("1-job", &sample())).is_ok());
    }

    #[test]
    fn so_many_workers_that_their_names_fit_nowhere_are_refused() {
        assert!(validate(&sample_with("parallelism", json!(10_000))).is_ok());
        for many in [10_001, i64::from(u32::MAX) + 1, i64::MAX] {
            let told = only_mistake(&sample_with("parallelism", json!(many)));
            assert_eq!(told, ("spec.parallelism".into(), format!("must be at most 10000, not {many}")));
        }
    }

    // R03
    #[test]
    fn server_and_path_are_nothing_without_each_other() {
        let data = |server, path| Mistakes(vec![]).data(server, path);
        assert_eq!(data(None, Some("/x")), Data::Half);
        assert_eq!(data(Some("10.0.0.7"), Some("")), Data::Half);
        assert_eq!(data(Some(""), None), Data::None);
        assert_eq!(data(Some("10.0.0.7"), Some("/x")), Data::Nfs { server: "10.0.0.7", path: "/x" });
    }
}
