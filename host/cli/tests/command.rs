//! The binary as its users call it. That this test is in the host's own package lets `cargo test` build the binary, with
//! the features that all other tests have.
#![expect(clippy::unwrap_used, reason = "a test says by its panic what is wrong")]

use std::{
    fs,
    io::{self, BufRead, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

fn troupe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_troupe")).args(arguments).output().unwrap()
}

#[test]
fn a_word_that_is_no_command_is_reported_with_those_that_are() {
    let output = troupe(&["operate"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("'operate'") && told.contains("operator"), "{told}");
}

#[test]
fn an_address_of_a_collector_in_the_environment_is_checked_as_the_flag_is() {
    let told = |variable: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        let command = command.arg("operator").args(arguments).env("OTEL_EXPORTER_OTLP_ENDPOINT", variable);
        // There is no cluster, so that it ends in any case.
        let output = command.env("KUBECONFIG", "/nowhere").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let wrong = told("collector:4318", &[]);
    assert!(wrong.contains("OTEL_EXPORTER_OTLP_ENDPOINT: it must be http:// or https://"), "{wrong}");
    let lacking = told("", &["--otlp-sample", "0.5"]);
    assert!(lacking.contains("--otlp-sample needs --otlp-endpoint"), "{lacking}");
    for (variable, arguments) in
        [("", &[][..]), ("http://collector:4318", &[]), ("wrong", &["--otlp-endpoint", "http://collector:4318"])]
    {
        let told = told(variable, arguments);
        assert!(told.contains("no cluster"), "{variable}: {told}");
    }
}

#[test]
fn help_names_every_command_with_what_it_does() {
    let output = troupe(&["--help"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    for command in ["operator", "demo", "crds", "preflight", "check", "plugin", "rbac", "sim", "explain"] {
        let line = told.lines().find(|line| line.trim_start().starts_with(command));
        assert!(line.is_some_and(|line| line.split_whitespace().count() > 3), "{command}: {told}");
    }
    assert!(!told.contains("compile"), "the host's own child is no command for users: {told}");
}

/// A name that is wider than most.
const NAME: &str = "resnet-of-whom-the-name-is-wide";

// Published manifests of training-operator are in the namespace kubeflow.
#[test]
fn the_demo_runs_a_manifest_in_a_namespace_that_there_is_not() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/pytorchjob.yaml");
    let manifest = fs::read_to_string(example)
        .unwrap()
        .replace("  name: resnet", &format!("  name: {NAME}\n  namespace: kubeflow"));
    let file = std::env::temp_dir().join(format!("troupe-demo-{}.yaml", std::process::id()));
    fs::write(&file, manifest).unwrap();
    let output = troupe(&["demo", file.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains(&format!("\n{NAME}  PyTorchJob  ")),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::write(&file, "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: j, namespace: No_Namespace}\n")
        .unwrap();
    let output = troupe(&["demo", file.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("namespaces/No_Namespace: Invalid: "), "{told}");
    fs::remove_file(&file).unwrap();
}

/// The end of a pipe that nobody reads.
fn closed() -> io::PipeWriter {
    io::pipe().unwrap().1
}

#[test]
fn a_command_whose_output_nobody_reads_ends_without_a_word() {
    let paddle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/paddlejob.yaml");
    let commands: [&[&str]; 5] =
        [&["crds"], &["rbac"], &["sim", "--seeds", "1"], &["sim", "--seeds", "1", "--trace"], &["demo", paddle]];
    for arguments in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        let output = command.args(arguments).stdout(closed()).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*told), (Some(141), ""), "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_reported() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_troupe")).arg("crds").stdout(full).stderr(Stdio::piped()).spawn();
    let output = output.unwrap().wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("troupe: standard output cannot be written: "), "{told}");
}

#[test]
fn a_command_that_fails_keeps_its_exit_code_where_nobody_reads_why() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    let status = command.args(["explain", "/nowhere"]).stderr(closed()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn an_operator_whose_logs_nobody_reads_goes_on() {
    let [address, nobody] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let kubeconfig = format!("{}/nobody.yaml", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&kubeconfig, NOBODY.replace("ADDRESS", &nobody.to_string())).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(["operator", "--admin-address", &address.to_string()]).env("KUBECONFIG", kubeconfig);
    let mut operator = command.stderr(closed()).spawn().unwrap();

    // Before it answers it logs which plugins it serves.
    let deadline = Instant::now() + Duration::from_secs(60);
    while healthy(address).is_err() && operator.try_wait().unwrap().is_none() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    let (healthy, ended) = (healthy(address), operator.try_wait().unwrap());
    operator.kill().unwrap();
    operator.wait().unwrap();
    assert!(healthy.is_ok() && ended.is_none(), "{healthy:?}, {ended:?}");
}

fn healthy(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.ends_with("\r\n\r\nok") { Ok(()) } else { Err(io::Error::other(answer)) }
}

/// A cluster whose API server does not answer.
const NOBODY: &str = "apiVersion: v1
kind: Config
current-context: nobody
contexts: [{name: nobody, context: {cluster: nobody, user: nobody}}]
clusters: [{name: nobody, cluster: {server: http://ADDRESS}}]
users: [{name: nobody, user: {}}]
";

/// A folder for one test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("troupe-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_file_of_a_hundred_gigabytes_is_refused_by_its_size() {
    let folder = folder("huge");
    // Sparse: it takes no room.
    let huge = folder.join("huge.txt");
    fs::File::create(&huge).unwrap().set_len(100 << 30).unwrap();
    let (huge, scenarios) = (huge.to_str().unwrap(), folder.to_str().unwrap());
    let commands: [&[&str]; 19] = [
        &["plugin", "inspect", huge],
        &["plugin", "inspect", "paddle", "--crd", huge],
        &["plugin", "configmap", huge],
        &["plugin", "push", huge, "localhost:1/a:1", "--insecure"],
        &["plugin", "push", "paddle", "localhost:1/a:1", "--insecure", "--docker-config", huge],
        &["plugin", "pull", "localhost:1/a:1", "--insecure", "--public-key", huge],
        &["plugin", "test", huge],
        &["plugin", "test", "paddle", "--recording", huge],
        &["plugin", "test", "paddle", "--scenarios", scenarios],
        &["plugin", "bench", huge],
        &["plugin", "bench", "paddle", "--scenarios", scenarios],
        &["plugin", "diff", huge, "paddle", "--recording", huge],
        &["plugin", "diff", "paddle", "paddle", "--recording", huge],
        &["explain", huge],
        &["rbac", "--plugin", huge],
        &["rbac", "--users", huge],
        &["demo", huge],
        &["demo", "--plugin", huge, huge],
        &["sim", "--plugin", huge, huge],
    ];
    for command in commands {
        let output = troupe(command);
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!output.status.success() && told.contains("huge.txt has more than "), "{command:?}: {told}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_inspect_refuses_is_neither_made_a_configmap_nor_pushed() {
    let folder = folder("no-plugin");
    let module = folder.join("module.wasm");
    fs::write(&module, b"\0asm\x01\0\0\0").unwrap();
    let empty = folder.join("empty.wasm");
    fs::write(&empty, b"\0asm\x0d\0\x01\0").unwrap();
    for (file, why) in [(&module, "is a core module, not a WebAssembly component"), (&empty, "the host would refuse")] {
        let file = file.to_str().unwrap();
        // Nobody listens there, and nobody is asked.
        let push = ["plugin", "push", file, "localhost:1/a:1", "--insecure"];
        for command in [&["plugin", "inspect", file][..], &["plugin", "configmap", file], &push] {
            let output = troupe(command);
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && output.stdout.is_empty() && told.contains(why), "{command:?}: {told}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_command_that_cannot_be_run_does_not_hide_what_came_before() {
    let folder = folder("stuck");
    fs::write(folder.join("a.txt"), "> show objects\nsomething\n> dance\n> show objects\n").unwrap();
    fs::write(folder.join("b.txt"), "> show objects\nnone\n").unwrap();
    let output = troupe(&["plugin", "test", "paddle", "--scenarios", folder.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{told}");
    for line in ["FAILED a.txt", "-something", "+none", "line 3: > dance", "ok b.txt", "1 of 2 scenarios"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Reads lines up to one that begins so, and returns them.
fn lines_up_to(lines: &mpsc::Receiver<String>, end: &str) -> Vec<String> {
    let mut read = vec![];
    loop {
        read.push(lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no line {end}: {read:?}")));
        if read.last().is_some_and(|line| line.starts_with(end)) {
            return read;
        }
    }
}

#[test]
fn a_scenario_that_is_saved_is_played_again() {
    let folder = folder("watch");
    let scenario = folder.join("a.txt");
    fs::write(&scenario, "> show objects\nsomething\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_troupe"))
        .args(["plugin", "test", "paddle", "--watch", "--scenarios", folder.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (send, lines) = mpsc::channel();
    let output = io::BufReader::new(child.stdout.take().unwrap());
    let reader = thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let first = lines_up_to(&lines, "watching");
    assert!(first.iter().any(|line| line == "FAILED a.txt"), "{first:?}");
    fs::write(&scenario, "> show objects\nnone\n").unwrap();
    let second = lines_up_to(&lines, "watching");
    assert!(second[0].starts_with("again: ") && second[0].contains("a.txt"), "{second:?}");
    assert!(second.iter().any(|line| line == "1 of 1 scenarios went as they say"), "{second:?}");
    fs::remove_file(&scenario).unwrap();
    let third = lines_up_to(&lines, "watching");
    assert!(third.iter().any(|line| line.starts_with("error: no scenario in")), "{third:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(reader.join());
    fs::remove_dir_all(folder).unwrap();
}

/// An answer's status and body; None breaks the connection off.
type Answer = Option<(u16, String)>;

/// Answers each request, by its path and its query, until the process ends. Returns the kubeconfig of the API server.
fn api_server(name: &str, mut answer: impl FnMut(&str, &str) -> Answer + Send + 'static) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.yaml"));
    fs::write(&kubeconfig, NOBODY.replace("ADDRESS", &listener.local_addr().unwrap().to_string())).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = io::BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let target = request.split(' ').nth(1).unwrap_or_default();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let Some((status, body)) = answer(path, query) else { continue };
            let head = format!("HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nConnection: close");
            // A client that has ended reads nothing.
            let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    kubeconfig
}

/// The output of a command on this cluster.
fn on_cluster(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(arguments).env("KUBECONFIG", kubeconfig).output().unwrap()
}

const JOBS: &str = "/apis/echo.example.com/v1/namespaces/lab/echojobs";

/// What an API server with one kind of job says of its kinds, or an empty list.
fn kinds(path: &str) -> String {
    let version = r#"{ "groupVersion": "echo.example.com/v1", "version": "v1" }"#;
    let group = format!(r#"{{ "name": "echo.example.com", "versions": [{version}], "preferredVersion": {version} }}"#);
    let kind = r#"{ "name": "echojobs", "singularName": "echojob", "kind": "EchoJob", "namespaced": true,
        "verbs": ["list"], "categories": ["troupe"] }"#;
    match path {
        "/apis" => format!(r#"{{ "kind": "APIGroupList", "apiVersion": "v1", "groups": [{group}] }}"#),
        "/apis/echo.example.com/v1" => {
            format!(r#"{{ "kind": "APIResourceList", "groupVersion": "echo.example.com/v1", "resources": [{kind}] }}"#)
        }
        _ => r#"{ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": [] }"#.to_owned(),
    }
}

/// A list of these jobs.
fn list_of(items: &str) -> String {
    let head = r#""kind": "EchoJobList", "apiVersion": "echo.example.com/v1", "metadata": { "resourceVersion": "1" }"#;
    format!(r#"{{ {head}, "items": [{items}] }}"#)
}

/// The answers of an API server with two jobs, of which one has a spec of 140 levels.
fn two_jobs(path: &str) -> String {
    let deep = format!("{}1{}", "[".repeat(140), "]".repeat(140));
    let job = |name: &str, spec: &str| {
        let managed = format!(r#"[{{ "manager": "kubectl", "fieldsV1": {spec} }}]"#);
        let metadata =
            format!(r#"{{ "name": "{name}", "namespace": "lab", "uid": "{name}", "managedFields": {managed} }}"#);
        format!(r#"{{ "metadata": {metadata}, "spec": {spec}, "status": {{ "phase": "Running" }} }}"#)
    };
    match path.strip_prefix(JOBS) {
        Some("") => list_of(&[job("deep", &deep), job("hamlet", "{}")].join(",")),
        Some("/deep") => job("deep", &deep),
        _ => kinds(path),
    }
}

#[test]
fn a_job_whose_spec_is_nested_too_deep_for_serde_json_is_listed_with_the_others() {
    let kubeconfig = api_server("deep", |path, _| Some((200, two_jobs(path))));
    let told = |arguments: &[&str]| {
        let output = on_cluster(&kubeconfig, &[&["job", "-n", "lab"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let rows = "JOB             STATE    AGE  WHY\nechojob/deep    Running  -\nechojob/hamlet  Running  -\n";
    assert_eq!(told(&["list"]), rows);
    assert_eq!(told(&["explain", "deep"]), "echojob/deep: Running, - old\n");
}

/// The job hamlet with this status.
fn hamlet(status: &str) -> String {
    let metadata = r#"{ "name": "hamlet", "namespace": "lab", "uid": "one", "resourceVersion": "2" }"#;
    format!(r#"{{ "metadata": {metadata}, "status": {status} }}"#)
}

#[test]
fn a_wait_goes_on_after_its_watch_broke_and_ends_as_its_job_does_or_when_that_is_deleted() {
    let ended = hamlet(r#"{ "troupe": { "finished": { "outcome": "succeeded" } } }"#);
    for (event, job, code) in [("MODIFIED", ended, 0), ("DELETED", hamlet("{}"), 1)] {
        // The last of them is given first.
        let event = format!(r#"{{ "type": "{event}", "object": {job} }}"#);
        let mut watches = vec![(200, format!("{event}\n")), (500, String::new())];
        let kubeconfig = api_server(&format!("wait-{code}"), move |path, query| match path.strip_prefix(JOBS) {
            Some("") if query.contains("watch=true") => Some(watches.pop().unwrap_or((200, String::new()))),
            Some("") => Some((200, list_of(&hamlet("{}")))),
            Some(_) => Some((200, hamlet("{}"))),
            None => Some((200, kinds(path))),
        });
        let output = on_cluster(&kubeconfig, &["job", "-n", "lab", "wait", "hamlet", "--timeout", "60"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains("the watch of echojob/hamlet is interrupted and goes on"), "{told}");
        assert_eq!(told.contains("echojob/hamlet was deleted"), code == 1, "{told}");
    }
}

#[test]
fn rights_of_a_cluster_are_printed_only_if_each_plugin_is_read_or_is_known_not_to_be_there() {
    let rights = |name: &str, answer: Answer| {
        let spec = r#"{ "source": { "configMap": { "name": "saga" } } }"#;
        let head = r#""apiVersion": "troupe.dev/v1alpha1", "kind": "Plugin""#;
        let plugins = list_of(&format!(r#"{{ {head}, "metadata": {{ "name": "saga" }}, "spec": {spec} }}"#));
        let kubeconfig = api_server(name, move |path, _| match path {
            "/api/v1/namespaces/troupe-system/configmaps/saga" => answer.clone(),
            _ => Some((200, plugins.clone())),
        });
        let output = on_cluster(&kubeconfig, &["rbac", "--cluster", "--policy", "ledger"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), !output.stdout.is_empty(), told)
    };
    let status = |code: u16| Some((code, format!(r#"{{ "kind": "Status", "code": {code}, "message": "not now" }}"#)));
    for (name, answer) in [("busy", status(429)), ("broken", status(500)), ("cut", None)] {
        let (succeeds, prints, told) = rights(name, answer);
        assert!(!succeeds && !prints, "{name}: {told}");
        assert!(told.contains("plugin saga cannot be read") && told.contains("run this again"), "{name}: {told}");
    }
    let absent = r#"{ "kind": "Status", "code": 404, "reason": "NotFound", "message": "not found" }"#;
    let (succeeds, prints, told) = rights("absent", Some((404, absent.into())));
    assert!(succeeds && prints && told.contains("plugin saga is left out: configmap troupe-system/saga"), "{told}");
}
