//! The launcher's pod: mpirun, which waits for the workers to call.

use crate::spec::AppArgs;
use crate::validate::Valid;
use serde_json::{Value, json};

/// The launcher's role, and what the name of its Job ends with.
pub(crate) const ROLE: &str = "launcher";
/// Its container.
pub(crate) const CONTAINER: &str = "rhino-mpi-launcher";

/// The spec of the launcher's pod.
pub(crate) fn pod_spec(valid: &Valid<'_>, reader: AppArgs) -> Value {
    // mpirun says this when it can be called.
    let is_ready = "cat /tmp/rhino-launcher.log | grep HYDRA_LAUNCH_END";
    let container = json!({
        "name": CONTAINER,
        "image": valid.image,
        "command": ["/bin/sh", "-c"],
        "args": args(valid, reader),
        "readinessProbe": {
            "exec": { "command": ["/bin/sh", "-c", is_ready] },
            "initialDelaySeconds": 1,
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
    });
    json!({ "containers": [container], "restartPolicy": "OnFailure" })
}

/// A script of ours, the name it goes by, and what the user wrote, which is never part of the script.
fn args(valid: &Valid<'_>, reader: AppArgs) -> Vec<String> {
    let users = std::iter::once(valid.app_exec).chain(valid.app_args.iter().map(String::as_str));
    let ours = [script(valid.parallelism, reader), CONTAINER.to_owned()];
    ours.into_iter().chain(users.map(|user| unexpanded(user, reader))).collect()
}

/// Better: mpirun's exit code is the script's, without a shell that knows `pipefail`. The number of a host is its name,
/// and there are no spaces between them, which would make the start slow.
fn script(parallelism: u32, reader: AppArgs) -> String {
    let hosts: Vec<_> = (0..parallelism).map(|index| index.to_string()).collect();
    let mpirun = format!("mpirun -launcher manual -verbose -disable-hostname-propagation -hosts '{}'", hosts.join(","));
    let run = match reader {
        AppArgs::Verbatim => format!("{mpirun} \"$@\""),
        AppArgs::Shell => format!("eval \"{mpirun} $*\""),
    };
    let (log, code) = ("/tmp/rhino-launcher.log", "/tmp/rhino-launcher.code");
    format!("{{ {run}; echo $? >{code}; }} | tee {log}; read -r code <{code}; exit \"${{code:-1}}\"")
}

/// Kubernetes makes `$` of `$$` and a variable's value of `$(NAME)` in arguments.
fn unexpanded(user: &str, reader: AppArgs) -> String {
    match reader {
        AppArgs::Verbatim => user.replace('$', "$$"),
        AppArgs::Shell => user.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, sample};
    use crate::validate::validate;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::Command;

    fn launcher(spec: &Value) -> Value {
        pod_spec(&validate(&job("sample", spec)).unwrap(), AppArgs::Verbatim)
    }

    // R01 and its Better: the script keeps mpirun's exit code
    #[test]
    fn mpirun_waits_for_its_hosts_and_is_ready_when_it_says_so() {
        let script = "{ mpirun -launcher manual -verbose -disable-hostname-propagation -hosts '0,1' \"$@\"; \
            echo $? >/tmp/rhino-launcher.code; } | tee /tmp/rhino-launcher.log; \
            read -r code </tmp/rhino-launcher.code; exit \"${code:-1}\"";
        let expected = json!({
            "restartPolicy": "OnFailure",
            "containers": [{
                "name": "rhino-mpi-launcher",
                "image": "openrhino/mpi-func:v1",
                "command": ["/bin/sh", "-c"],
                "args": [script, "rhino-mpi-launcher", "/app/mpi-func", "1", "10", "1"],
                "readinessProbe": {
                    "exec": { "command": ["/bin/sh", "-c", "cat /tmp/rhino-launcher.log | grep HYDRA_LAUNCH_END"] },
                    "initialDelaySeconds": 1,
                    "periodSeconds": 1,
                    "failureThreshold": 1,
                },
            }],
        });
        assert_eq!(launcher(&sample()), expected);
    }

    // R01
    #[test]
    fn a_single_process_has_one_host() {
        let mut spec = sample();
        spec["parallelism"] = json!(1);
        assert!(launcher(&spec)["containers"][0]["args"][0].as_str().unwrap().contains(" -hosts '0' "));
    }

    // R03
    #[test]
    fn the_launcher_has_no_volume() {
        let mut spec = sample();
        (spec["dataServer"], spec["dataPath"]) = (json!("10.0.0.7"), json!("/kfnmck56"));
        assert_eq!(launcher(&spec), launcher(&sample()));
    }

    // Better: the original's shell would run this
    #[test]
    fn what_the_user_writes_is_never_part_of_the_script() {
        let mut spec = sample();
        spec["appArgs"] = json!(["; rm -rf /", "$(HOME)", "$$"]);
        let args = &launcher(&spec)["containers"][0]["args"];
        assert_eq!(args[0], launcher(&sample())["containers"][0]["args"][0]);
        assert_eq!(args.as_array().unwrap()[3..], [json!("; rm -rf /"), json!("$$(HOME)"), json!("$$$$")]);
    }

    /// Runs the script as the container does, with an mpirun that prints its arguments and ends like this.
    fn run(reader: AppArgs, user: &[&str], mpirun: &str) -> (i32, String, String) {
        static TURN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let turn = TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder: PathBuf = std::env::temp_dir().join(format!("rhino-launcher-{}-{turn}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("mpirun");
        std::fs::write(&program, format!("#!/bin/sh\nprintf '<%s>' \"$@\"\n{mpirun}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let script = script(2, reader).replace("/tmp/", &format!("{}/", folder.display()));
        let output = Command::new("sh")
            .args(["-c", &script, CONTAINER])
            .args(user)
            .env("PATH", path)
            .env("TEN", "10")
            .output()
            .unwrap();
        let log = std::fs::read_to_string(folder.join("rhino-launcher.log")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), said.split("<0,1>").nth(1).unwrap_or_default().to_owned(), log)
    }

    // Better
    #[test]
    fn the_launcher_ends_as_mpirun_does_and_shows_what_it_said() {
        for code in [0, 3, 255] {
            let (ended, said, log) = run(AppArgs::Verbatim, &["/app/x"], &format!("exit {code}"));
            assert_eq!((ended, &*said), (code, "</app/x>"));
            assert!(log.ends_with("<0,1></app/x>"), "{log}");
        }
        let (killed, ..) = run(AppArgs::Verbatim, &["/app/x"], "kill -9 $$");
        assert_eq!(killed, 128 + 9);
    }

    // Better, and with `app-args: shell` as the original
    #[test]
    fn arguments_stay_as_they_are_unless_the_shell_is_to_read_them() {
        let user = ["/app/x", "-n $TEN", "'a  b'", ""];
        let (_, said, _) = run(AppArgs::Verbatim, &user, "exit 0");
        assert_eq!(said, "</app/x><-n $TEN><'a  b'><>");
        let (ended, said, _) = run(AppArgs::Shell, &user, "exit 4");
        assert_eq!((ended, &*said), (4, "</app/x><-n><10><a  b>"));
    }

    #[test]
    fn a_shell_that_cannot_read_the_arguments_is_a_failure() {
        let (ended, ..) = run(AppArgs::Shell, &["/app/x", "'"], "exit 0");
        assert_ne!(ended, 0);
    }
}
