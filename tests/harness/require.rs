//! Which tests this machine can run, and which it must. `build.rs` asks, so that cargo counts the others as ignored.

use std::process::Command;

/// What a test needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// A control plane: Go and openssl.
    Cluster,
    /// A real node: what a control plane needs, and root on a machine with apt that lets it make namespaces.
    Node,
    /// A real node, and what frameworks are published as: Debian's and PyPI's packages of some hundred megabytes. Only tried where
    /// `TROUPE_REQUIRE` names it.
    Frameworks,
    /// A control plane, and operators of the ecosystem beside it, whose first build takes ten minutes. Only tried where
    /// `TROUPE_REQUIRE` names it.
    Ecosystem,
    /// A control plane that is troubled for ten minutes. Only tried where `TROUPE_REQUIRE` names it.
    Resilience,
    /// A control plane, and minutes to build a new plugin's crate and all that it depends on. Only tried where
    /// `TROUPE_REQUIRE` names it.
    Author,
    /// Control planes of older releases of Kubernetes, whose first build takes five minutes each. Only tried where
    /// `TROUPE_REQUIRE` names it.
    Releases,
    /// A control plane, npm and Python, and packages of Debian, npm and PyPI of some hundred megabytes that make components
    /// of other languages than Rust. Only tried where `TROUPE_REQUIRE` names it.
    Languages,
    /// A control plane and `curl`, for minutes. Only tried where `TROUPE_REQUIRE` names it.
    Book,
    /// A real node, and the image of a release build. Only tried where `TROUPE_REQUIRE` names it.
    Image,
    /// A browser, Debian's package of some hundred megabytes. Only tried where `TROUPE_REQUIRE` names it.
    Page,
    /// `curl`, for the commands of the documentation.
    Curl,
    /// Root, for hours: another machine's files below `target`, in which both commands of README run from nothing. Only tried
    /// where `TROUPE_REQUIRE` names it.
    Machine,
}

impl Need {
    /// Its name in `TROUPE_REQUIRE`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Need::Cluster => "cluster",
            Need::Node => "node",
            Need::Frameworks => "frameworks",
            Need::Ecosystem => "ecosystem",
            Need::Resilience => "resilience",
            Need::Author => "author",
            Need::Releases => "releases",
            Need::Languages => "languages",
            Need::Book => "book",
            Need::Image => "image",
            Need::Page => "page",
            Need::Curl => "curl",
            Need::Machine => "machine",
        }
    }
}

/// Every need.
pub(crate) const ALL: [Need; 13] = [
    Need::Cluster,
    Need::Node,
    Need::Frameworks,
    Need::Ecosystem,
    Need::Resilience,
    Need::Author,
    Need::Releases,
    Need::Languages,
    Need::Book,
    Need::Image,
    Need::Page,
    Need::Curl,
    Need::Machine,
];

/// Stands between the needs that the build script hands to the set-up as missing; no reason has it.
pub(crate) const BETWEEN: char = '\t';

/// Why the tests with this need cannot run, or are not to. Ok: they run.
///
/// `required` is the value of `TROUPE_REQUIRE`: a comma list of the needs' names.
pub(crate) fn met(required: &str, need: Need) -> Result<(), String> {
    wanted(required, need).and_then(|()| available(need))
}

/// Whether this machine can have it, or why not.
fn available(need: Need) -> Result<(), String> {
    // What the set-up before the first test installs counts as there.
    let installed = |program: &str, version: &str| {
        runs(program, &[version]).map(drop).or_else(|missing| may_install().map_err(|no| format!("{missing}; {no}")))
    };
    match need {
        Need::Curl => return installed("curl", "--version"),
        Need::Page => return installed("chromium", "--version"),
        Need::Machine => {
            may_install()?;
            return may_make_namespaces();
        }
        _ => {}
    }
    runs("go", &["version"])?;
    installed("openssl", "version")?;
    if need == Need::Book {
        installed("curl", "--version")?;
    }
    if need == Need::Languages {
        for program in ["npm", "python3"] {
            runs(program, &["--version"])?;
        }
        installed("clang", "--version")?;
    }
    if matches!(need, Need::Node | Need::Frameworks | Need::Image) {
        may_install()?;
        may_make_namespaces()?;
    }
    Ok(())
}

/// Root of a container may lack this.
fn may_make_namespaces() -> Result<(), String> {
    runs("unshare", &["--mount", "--pid", "--fork", "--mount-proc", "true"]).map(drop)
}

/// Whether packages of Debian can be installed, or why not.
fn may_install() -> Result<(), String> {
    runs("apt-get", &["--version"])?;
    let uid = runs("id", &["-u"])?;
    if uid.trim() != "0" {
        return Err(format!("packages are installed by root, this is user {}", uid.trim()));
    }
    Ok(())
}

/// Tests with this need are left out on every machine unless `TROUPE_REQUIRE` names it.
pub(crate) fn is_opt_in(need: Need) -> bool {
    wanted("", need).is_err()
}

/// Whether to try at all, or why not.
fn wanted(required: &str, need: Need) -> Result<(), String> {
    let why = match need {
        Need::Cluster | Need::Node | Need::Curl => return Ok(()),
        Need::Frameworks => "nobody asked for the downloads",
        Need::Ecosystem => "nobody asked for the builds",
        Need::Resilience => "nobody asked for ten minutes of trouble",
        Need::Author => "nobody asked for the builds of a new crate",
        Need::Releases => "nobody asked to build older releases of Kubernetes",
        Need::Languages => "nobody asked for the tools of other languages",
        Need::Book => "nobody asked for minutes of commands",
        Need::Image => "nobody asked for a release build",
        Need::Page => "nobody asked for a browser",
        Need::Machine => "nobody asked for hours on a new machine",
    };
    if named(required, need) { Ok(()) } else { Err(why.into()) }
}

/// `TROUPE_REQUIRE` names this need: what cannot run has failed.
pub(crate) fn named(required: &str, need: Need) -> bool {
    required.split(',').any(|name| name.trim() == need.name())
}

fn runs(program: &str, arguments: &[&str]) -> Result<String, String> {
    match Command::new(program).args(arguments).output() {
        Ok(done) if done.status.success() => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        Ok(done) => Err(format!("{program} does not work: {}", done.status)),
        Err(error) => Err(format!("{program} does not start: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_a_comma_list() {
        assert!(named("cluster, node", Need::Node));
        assert!(!named("cluster", Need::Node));
        assert!(!named("", Need::Cluster));
    }

    #[test]
    fn only_what_is_large_has_to_be_asked_for() {
        assert_eq!([Need::Cluster, Need::Node].map(|need| wanted("", need)), [Ok(()), Ok(())]);
        let large = ALL.iter().filter(|need| is_opt_in(**need));
        assert!(
            large.count() == 10 && ALL.iter().all(|need| is_opt_in(*need) == wanted("cluster,node", *need).is_err())
        );
        assert_eq!(wanted("cluster,node,frameworks", Need::Frameworks), Ok(()));
    }

    #[test]
    fn a_program_that_is_not_there_is_a_reason() {
        assert!(runs("no-such-program", &[]).unwrap_err().starts_with("no-such-program does not start"));
    }
}
