//! The real binary as a child process: started against a kubeconfig, ended by its own id.

use anyhow::{Context, Result, ensure};
use harness::{ControlPlane, until};
use serde_json::Value;
use std::{
    env,
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, pem::PemObject},
    },
};

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(20);

/// A running `troupe operator`. It is killed with the value, and when the thread that started it dies.
pub(crate) struct Operator {
    child: Child,
    admin: SocketAddr,
    /// What the admin port's certificate is checked by, where it speaks TLS.
    authority: Option<PathBuf>,
    log: PathBuf,
}

impl Operator {
    /// Starts the binary as the user `troupe`, and returns when it is ready.
    pub(crate) async fn start(plane: &ControlPlane, arguments: &[&str]) -> Self {
        Self::start_as(plane, "troupe", arguments).await
    }

    /// The same as another user.
    pub(crate) async fn start_as(plane: &ControlPlane, user: &str, arguments: &[&str]) -> Self {
        Self::start_of(binary(), plane, user, arguments).await
    }

    /// The same of another binary.
    pub(crate) async fn start_of(binary: &Path, plane: &ControlPlane, user: &str, arguments: &[&str]) -> Self {
        let mut operator = Self::begin(binary, plane.dir(), &plane.kubeconfig(user).unwrap(), arguments);
        let ready = until(START, "the operator to be ready", || async {
            let (code, text) = operator.admin("/readyz").await?;
            ensure!(code == 200, "{code}: {text}");
            Ok(Some(()))
        });
        if let Err(error) = ready.await {
            let ended = operator.child.try_wait();
            panic!("{error:#} ({ended:?})");
        }
        operator
    }

    /// One whose admin port others can reach, so that it speaks TLS with this certificate.
    pub(crate) async fn start_reviewed(plane: &ControlPlane, user: &str, certificate: &Path, key: &Path) -> Self {
        let (files, everywhere) =
            ([certificate, key].map(|file| file.to_str().unwrap()), free_port("0.0.0.0:0").unwrap());
        let arguments = ["--admin-tls-certificate", files[0], "--admin-tls-key", files[1]];
        let mut operator =
            Self::spawn(binary(), plane.dir(), &plane.kubeconfig(user).unwrap(), &arguments, everywhere).unwrap();
        operator.authority = Some(certificate.to_owned());
        let ready = until(START, "the operator to be ready", || async {
            Ok((operator.read("/readyz", None).await?.0 == 200).then_some(()))
        });
        if let Err(error) = ready.await {
            let ended = operator.child.try_wait();
            panic!("{error:#} ({ended:?})");
        }
        operator
    }

    /// What the admin port shows over TLS to the user with this token.
    pub(crate) async fn read(&self, path: &str, token: Option<&str>) -> Result<(u16, String)> {
        let authority = CertificateDer::from_pem_file(self.authority.as_ref().context("it speaks no TLS")?)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.admin_address()).await?;
        let stream = TlsConnector::from(Arc::new(config)).connect("localhost".try_into()?, stream).await?;
        get(stream, path, token).await
    }

    /// Where its admin port can be reached from this machine.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.admin.port()).into()
    }

    /// Starts a binary with a kubeconfig and its log in a folder, and waits for nothing.
    pub(crate) fn begin(binary: &Path, logs: &Path, kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::spawn(binary, logs, kubeconfig, arguments, free_port("127.0.0.1:0").unwrap()).unwrap()
    }

    /// What it has written so far. No test waits for a line of it: the API, metrics and readiness say more.
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The last pass over a job, as the admin port tells it: what was seen, answered and decided.
    pub(crate) async fn pass(&self, plural: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let (code, text) = self.admin(&format!("/jobs/{plural}/{namespace}/{name}")).await?;
        Ok(if code == 404 { None } else { Some(serde_json::from_str(&text)?) })
    }

    /// What Prometheus reads.
    pub(crate) async fn metrics(&self) -> Result<String> {
        Ok(self.admin("/metrics").await?.1)
    }

    /// SIGKILL: no last word of it reaches the API server.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM: it ends by itself, and well. Returns what it has written.
    pub(crate) async fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        // The shell's own: a small system has no program of this name.
        assert!(Command::new("sh").args(["-c", &format!("kill -s TERM {id}")]).status().unwrap().success());
        let ended = until(STOP, "the operator to end", || {
            let ended = self.child.try_wait();
            async move { Ok(ended?) }
        });
        let status = ended.await.unwrap();
        assert!(status.success(), "ended with {status}");
        self.log()
    }

    fn spawn(binary: &Path, logs: &Path, kubeconfig: &Path, arguments: &[&str], admin: SocketAddr) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = logs.join(format!("operator-{number}.log"));
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = command(binary, kubeconfig);
        let command = command.arg("operator").args(arguments).args(["--admin-address", &admin.to_string()]);
        let command = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Ok(Self { child: command.spawn().context("setpriv does not start")?, admin, authority: None, log })
    }

    /// What the admin port shows by plain HTTP.
    pub(crate) async fn admin(&self, path: &str) -> Result<(u16, String)> {
        get(TcpStream::connect(self.admin).await?, path, None).await
    }
}

/// Bound and let go, so that nobody is there; nobody else asks the kernel for a port on this address.
fn free_port(address: &str) -> Result<SocketAddr> {
    Ok(TcpListener::bind(address)?.local_addr()?)
}

/// The answer's code and body. HTTP 1.0: a client that does not know chunks gets none.
async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    token: Option<&str>,
) -> Result<(u16, String)> {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{token}\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (head, body) = text.split_once("\r\n\r\n").context("no HTTP")?;
    let code = head.split(' ').nth(1).context("no HTTP status")?.parse()?;
    Ok((code, body.to_owned()))
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let last = log.lines().rev().take(20).map(|line| line.chars().take(400).collect::<String>());
            let last: Vec<_> = last.collect();
            eprintln!("the end of {}:", self.log.display());
            last.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// The program that cargo has built with these tests from the source of `troupe`, in their profile. Another build if
/// `TROUPE_BINARY` names one, for figures.
pub(crate) fn binary() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        env::var_os("TROUPE_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_troupe-of-tests").into(), PathBuf::from)
    });
    &BINARY
}

/// Returns a command of a binary with a kubeconfig and the compiled plugins, still without arguments. Its process is killed
/// when the thread that started it ends.
pub(crate) fn command(binary: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(binary);
    command.env("KUBECONFIG", kubeconfig).env("TROUPE_PRECOMPILED", precompiled());
    command
}

/// Returns a folder with the compiled code of the plugins that come with [`binary`], as the image has it. It is made once:
/// each host would need six seconds of processor time to compile them.
fn precompiled() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("precompiled");
        let made = Command::new(binary()).args(["plugin", "precompile"]).arg(&folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    });
    &FOLDER
}
