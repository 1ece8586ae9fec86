//! `troupe plugin new`: a plugin's project in a folder of its own, which builds, passes its tests and serves its kind, in
//! one of several languages.

use crate::args::NewArgs;
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
};
use troupe::out;

/// The language of a new plugin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust, with the SDK: unit tests, the CRD from the types. The smallest and fastest component.
    #[default]
    Rust,
    /// C, against the generated bindings; needs clang, lld and wasi-libc.
    C,
    /// Go, the ordinary one, in a component with its runtime; needs Go.
    Go,
    /// JavaScript, in a component with QuickJS; needs Node.js and npm.
    #[value(name = "javascript")]
    JavaScript,
    /// Python, in a component with CPython: 18 MB, for a registry and a host with `--max-plugin-bytes`; needs Python 3.
    Python,
}

/// A file and its text: its names are those of the kind AcmeJob until they are replaced.
type TemplateFile = (&'static str, &'static str);

/// The files of every project.
const COMMON: &[TemplateFile] = &[
    ("crd.yaml", include_str!("new/template/common/crd.yaml")),
    ("example.yaml", include_str!("new/template/common/example.yaml")),
    ("scenarios/fails-with-a-worker.txt", include_str!("new/template/common/scenarios/fails-with-a-worker.txt")),
    (
        "scenarios/is-refused-by-its-fields.txt",
        include_str!("new/template/common/scenarios/is-refused-by-its-fields.txt"),
    ),
    ("scenarios/is-suspended.txt", include_str!("new/template/common/scenarios/is-suspended.txt")),
    ("scenarios/runs-to-its-end.txt", include_str!("new/template/common/scenarios/runs-to-its-end.txt")),
    ("scenarios/shorthand.json", include_str!("new/template/common/scenarios/shorthand.json")),
    (
        "scenarios/tells-workers-who-they-are.txt",
        include_str!("new/template/common/scenarios/tells-workers-who-they-are.txt"),
    ),
];

/// The resource of a plugin that is in a ConfigMap.
const OF_CONFIG_MAP: TemplateFile = ("plugin.yaml", include_str!("new/template/common/plugin.yaml"));

/// The contract, where a language makes its bindings of it.
const CONTRACT: TemplateFile = ("wit/framework.wit", include_str!("../../../../wit/framework.wit"));

impl Language {
    /// The files that only its projects have.
    fn files(self) -> &'static [TemplateFile] {
        match self {
            Self::Rust => &[
                (".gitignore", include_str!("new/template/rust/gitignore")),
                ("Cargo.toml", include_str!("new/template/rust/manifest.toml")),
                ("README.md", include_str!("new/template/rust/README.md")),
                ("examples/crd.rs", include_str!("new/template/rust/examples/crd.rs")),
                ("rust-toolchain.toml", include_str!("../../../../rust-toolchain.toml")),
                ("src/lib.rs", include_str!("new/template/rust/src/lib.rs")),
                ("src/spec.rs", include_str!("new/template/rust/src/spec.rs")),
                OF_CONFIG_MAP,
            ],
            Self::C => &[
                (".gitignore", include_str!("new/template/c/gitignore")),
                ("README.md", include_str!("new/template/c/README.md")),
                ("job.c", include_str!("new/template/c/job.c")),
                ("json.c", include_str!("new/template/c/json.c")),
                ("json.h", include_str!("new/template/c/json.h")),
                CONTRACT,
                OF_CONFIG_MAP,
            ],
            Self::Go => &[
                (".gitignore", include_str!("new/template/go/gitignore")),
                ("README.md", include_str!("new/template/go/README.md")),
                ("go.mod", include_str!("new/template/go/module.txt")),
                ("go.sum", include_str!("new/template/go/go.sum")),
                ("job.go", include_str!("new/template/go/job.go")),
                CONTRACT,
                OF_CONFIG_MAP,
            ],
            Self::JavaScript => &[
                (".gitignore", include_str!("new/template/javascript/gitignore")),
                ("README.md", include_str!("new/template/javascript/README.md")),
                ("job.js", include_str!("new/template/javascript/job.js")),
                ("package.json", include_str!("new/template/javascript/package.json")),
                ("package-lock.json", include_str!("new/template/javascript/package-lock.json")),
                ("scenarios/cuts-no-emoji.txt", include_str!("new/template/javascript/scenarios/cuts-no-emoji.txt")),
                CONTRACT,
                OF_CONFIG_MAP,
            ],
            Self::Python => &[
                (".gitignore", include_str!("new/template/python/gitignore")),
                ("README.md", include_str!("new/template/python/README.md")),
                ("job.py", include_str!("new/template/python/job.py")),
                ("plugin.yaml", include_str!("new/template/python/plugin.yaml")),
                ("requirements.txt", include_str!("new/template/python/requirements.txt")),
                CONTRACT,
            ],
        }
    }

    /// Where `troupe plugin build` leaves the component of the crate with this name.
    fn component(self, file: &str) -> String {
        match self {
            Self::Rust => format!("target/wasm32-wasip2/release/{file}.wasm"),
            Self::C | Self::Go | Self::JavaScript | Self::Python => "target/plugin.wasm".to_owned(),
        }
    }
}

/// Where the SDK is in a checkout.
const SDK: &str = "plugins/sdk";

pub(super) fn new(args: &NewArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    is_label(name).with_context(|| format!("NAME {name:?}"))?;
    let kind = &args.kind;
    let plural = args.plural.clone().unwrap_or_else(|| plural(&kind.kind));
    let file = name.replace('-', "_");
    let lang = args.lang;
    let sdk = match lang {
        Language::Rust => sdk(args.sdk.as_deref())?,
        _ => {
            ensure!(args.sdk.is_none(), "--sdk is for Rust; other languages need no SDK");
            String::new()
        }
    };
    // In this order: a later name may be part of an earlier one.
    let names = [
        ("acme.example.org", kind.group.as_str()),
        ("acmejobs", &plural),
        ("acmejob", &kind.kind.to_lowercase()),
        ("AcmeJob", &kind.kind),
        ("v1acme1", &kind.version),
        ("@SDK@", &sdk),
        ("@FILE@", &file),
        ("@LIB@", &file),
        ("acme", name),
    ];
    let folder = Path::new(name);
    fs::create_dir(folder).with_context(|| format!("folder {name} cannot be made"))?;
    for (path, text) in COMMON.iter().chain(lang.files()) {
        let path = folder.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| fs::write(&path, replaced(text, &names)));
        written.with_context(|| format!("{} cannot be written", path.display()))?;
    }
    out::line(format_args!(
        "made {name}, a plugin for {} ({}/{}); now:\n\n  cd {name}\n  troupe plugin build\n  troupe plugin test\n  \
         troupe demo --plugin {} example.yaml\n\n{name}/README.md says what is where",
        kind.kind,
        kind.group,
        kind.version,
        lang.component(&file)
    ));
    Ok(ExitCode::SUCCESS)
}

/// A kind of job that is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKind {
    group: String,
    version: String,
    kind: String,
}

impl FromStr for NewKind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let [group, version, kind] = *text.split('/').collect::<Vec<_>>() else {
            bail!("it must be GROUP/VERSION/KIND, such as example.org/v1/EchoJob");
        };
        ensure!(group.contains('.'), "the group {group:?} must be a domain name such as example.org");
        group.split('.').try_for_each(|label| is_label(label).with_context(|| format!("the group {group:?}")))?;
        let is_protected =
            ["k8s.io", "kubernetes.io"].iter().any(|of| group == *of || group.ends_with(&format!(".{of}")));
        ensure!(!is_protected, "the group {group:?} belongs to Kubernetes, which accepts no CRD of others in it");
        is_label(version).with_context(|| format!("the version {version:?}"))?;
        let is_name = kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.chars().all(|letter| letter.is_ascii_alphanumeric())
            && kind.len() <= 60;
        ensure!(is_name, "the kind {kind:?} must be letters and digits that begin with a capital, such as EchoJob");
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }
}

/// Checks that a text is a DNS label that begins with a letter.
fn is_label(text: &str) -> anyhow::Result<()> {
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let fits = text.len() <= 63 && text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.ends_with('-');
    ensure!(fits && text.chars().all(is_inner), "must be lower case letters, digits and '-' and begin with a letter");
    Ok(())
}

/// The plural of a kind, as English mostly has it.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// Returns how `Cargo.toml` names the SDK: the path or repository that the user gave, else that of the checkout that this
/// program was built in.
fn sdk(given: Option<&str>) -> anyhow::Result<String> {
    if let Some(url) = given.filter(|given| given.contains("://") || given.starts_with("git@")) {
        return Ok(format!("git = {url:?}"));
    }
    let path = match given {
        Some(path) => PathBuf::from(path),
        None => checkout().context(
            "this program is in no checkout of Troupe that could have the SDK; name it with --sdk: the folder plugins/sdk of a \
             checkout, or the address of the git repository",
        )?,
    };
    let whole = path.canonicalize().with_context(|| format!("--sdk {}", path.display()))?;
    ensure!(
        whole.join("Cargo.toml").is_file(),
        "--sdk {} has no Cargo.toml: name the folder plugins/sdk",
        path.display()
    );
    Ok(format!("path = {:?}", whole.to_str().context("the path of the SDK is no text")?))
}

fn checkout() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    program.ancestors().map(|folder| folder.join(SDK)).find(|sdk| sdk.join("Cargo.toml").is_file())
}

/// Returns the text with other names. A name that was put in is not replaced again.
fn replaced(text: &str, names: &[(&str, &str)]) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match names.iter().find(|(from, _)| rest.starts_with(from)) {
            Some((from, to)) => {
                whole.push_str(to);
                rest = &rest[from.len()..];
            }
            None => {
                whole.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_by_group_version_and_kind() {
        let kind: NewKind = "batch.echo.dev/v1/EchoJob".parse().unwrap();
        assert_eq!((&*kind.group, &*kind.version, &*kind.kind), ("batch.echo.dev", "v1", "EchoJob"));
        for (text, why) in [
            ("EchoJob", "GROUP/VERSION/KIND"),
            ("echo/v1/EchoJob", "domain name"),
            ("Echo.dev/v1/EchoJob", "lower case"),
            ("jobs.k8s.io/v1/EchoJob", "belongs to Kubernetes"),
            ("echo.dev/V1/EchoJob", "version"),
            ("echo.dev/v1/echojob", "capital"),
            ("echo.dev/v1/Echo-Job", "capital"),
        ] {
            let error = format!("{:#}", text.parse::<NewKind>().unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_plural_is_as_english_mostly_has_it() {
        for (kind, expected) in [("EchoJob", "echojobs"), ("Batch", "batches"), ("Story", "stories"), ("Day", "days")] {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn names_are_replaced_once_each() {
        let names = [("acme.example.org", "acme.dev"), ("acme", "x-acme")];
        assert_eq!(replaced("acme: acme.example.org, pacme", &names), "x-acme: acme.dev, px-acme");
    }
}
