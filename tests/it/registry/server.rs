//! A registry that says exactly what a test tells it to, and remembers what it was asked.

use parking_lot::Mutex;
use std::{fmt::Write, net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

/// It listens on this machine, and ends with the value.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

/// One request.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    /// Method and path with query.
    pub(super) line: String,
    /// What it says of who asks.
    pub(super) authorization: Option<String>,
    /// What it carries.
    pub(super) body: String,
}

/// What is answered. The connection is closed afterwards.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// An answer as HTTP has it.
    Http { status: &'static str, headers: Vec<(&'static str, String)>, length: Length, body: Vec<u8> },
    /// These bytes.
    Raw(Vec<u8>),
    /// Nothing, for ever.
    Silence,
}

/// How long an answer says that it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Length {
    /// As it is.
    True,
    /// So many bytes.
    Said(usize),
    /// It ends when the connection does.
    Unsaid,
}

impl Reply {
    pub(super) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::Http { status: "200 OK", headers: vec![], length: Length::True, body: body.into() }
    }

    pub(super) fn status(status: &'static str) -> Self {
        Self::Http { status, headers: vec![], length: Length::True, body: vec![] }
    }

    pub(super) fn to(location: impl Into<String>) -> Self {
        Self::status("307 Temporary Redirect").header("Location", location)
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }

    pub(super) fn length(mut self, says: Length) -> Self {
        if let Self::Http { length, .. } = &mut self {
            *length = says;
        }
        self
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let (status, headers, length, body) = match self {
            Self::Http { status, headers, length, body } => (status, headers, length, body),
            Self::Raw(bytes) => return Some(bytes.clone()),
            Self::Silence => return None,
        };
        let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
        headers.iter().for_each(|(name, value)| write!(head, "{name}: {value}\r\n").unwrap());
        match length {
            Length::True => write!(head, "Content-Length: {}\r\n", body.len()).unwrap(),
            Length::Said(length) => write!(head, "Content-Length: {length}\r\n").unwrap(),
            Length::Unsaid => {}
        }
        Some([head.as_bytes(), b"\r\n", body].concat())
    }
}

impl Server {
    pub(super) async fn start(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                tokio::spawn(async move { converse(stream, &*answer, &seen).await });
            }
        });
        Self { address, asked, task }
    }

    /// What it was asked so far.
    pub(super) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().clone()
    }

    /// Whether it was asked for a path with this in it.
    pub(super) fn was_asked(&self, part: &str) -> bool {
        self.asked().iter().any(|asked| asked.line.contains(part))
    }

    /// What was said to it of who asks, one word a request.
    pub(super) fn told(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.authorization.unwrap_or_else(|| "nothing".to_owned())).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request and its answer. Whoever hangs up is let go.
pub(super) async fn converse<S>(
    mut stream: S,
    answer: &(dyn Fn(&ReceivedRequest) -> Reply + Sync),
    seen: &Mutex<Vec<ReceivedRequest>>,
) where
    S: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let Some(asked) = listen(&mut stream).await else { return };
    seen.lock().push(asked.clone());
    match answer(&asked).bytes() {
        Some(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        None => std::future::pending().await,
    }
}

async fn listen<S: AsyncReadExt + Unpin>(stream: &mut S) -> Option<ReceivedRequest> {
    const TLS_HELLO: u8 = 0x16;
    let mut text = Vec::new();
    let end = loop {
        if text.first() == Some(&TLS_HELLO) {
            return Some(ReceivedRequest { line: "TLS".to_owned(), authorization: None, body: String::new() });
        }
        if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        stream.read_buf(&mut text).await.ok().filter(|count| *count > 0)?;
    };
    let head = String::from_utf8_lossy(&text[..end]).into_owned();
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.clone().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = text[end + 4..].to_vec();
    while body.len() < length {
        stream.read_buf(&mut body).await.ok().filter(|count| *count > 0)?;
    }
    let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(ReceivedRequest { line, authorization: header("authorization"), body })
}
