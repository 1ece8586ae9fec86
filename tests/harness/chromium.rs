//! A real browser without a window: Debian's Chromium, driven by the DevTools protocol over two pipes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::packages;
use crate::poll::until;
use crate::run_dir::RunDir;

/// How long a page may take to come to what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser reads commands from descriptor 3 and writes answers to 4, each ended by a zero.
const START: &str = r#"exec chromium "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>"$LOG""#;

/// A browser with one page. It ends with the value.
#[derive(Debug)]
pub struct Chromium {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _child: Child,
    _folder: RunDir,
    session: String,
    commands: u64,
    /// What the page complained of: errors, and what its policy forbids.
    complaints: Vec<String>,
}

impl Chromium {
    /// Starts the browser with an empty page.
    pub async fn start() -> Result<Self> {
        tokio::task::spawn_blocking(|| packages::have(packages::BROWSER)).await??;
        let folder = RunDir::create("chromium")?;
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "sh", "-c", START, "sh"]).arg(profile);
        // Its sandbox needs more than a container lets root have.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        command.args(["--remote-debugging-pipe", "--ignore-certificate-errors", "--hide-scrollbars", "about:blank"]);
        command.env("LOG", folder.join("chromium.log"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let to = child.stdin.take().context("it takes no commands")?;
        let from = BufReader::new(child.stdout.take().context("it gives no answers")?);
        let session = String::new();
        let mut browser = Self { to, from, _child: child, _folder: folder, session, commands: 0, complaints: vec![] };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" })).await?;
        let attached = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attached).await?;
        browser.session = attached["sessionId"].as_str().context("no session")?.to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({})).await?;
        }
        Ok(browser)
    }

    /// Goes to an address.
    pub async fn go(&mut self, address: &str) -> Result<()> {
        let went = self.call("Page.navigate", json!({ "url": address })).await?;
        ensure!(went["errorText"].is_null(), "{address}: {}", went["errorText"]);
        Ok(())
    }

    /// Has the page this wide, in light or dark colours.
    pub async fn look(&mut self, width: u32, height: u32, scheme: &str) -> Result<()> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size).await?;
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features).await?;
        Ok(())
    }

    /// Returns the value of an expression in the page.
    pub async fn value(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked).await?;
        if !answer["exceptionDetails"].is_null() {
            bail!("{expression}: {}", answer["exceptionDetails"]);
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression in the page is true.
    pub async fn until(&mut self, expression: &str) -> Result<()> {
        let browser = tokio::sync::Mutex::new(self);
        let browser = &browser;
        until(PATIENCE, expression, || async move {
            let value = browser.lock().await.value(expression).await?;
            ensure!(value.is_boolean() || value.is_null(), "it is {value}");
            Ok((value == true).then_some(()))
        })
        .await
    }

    /// Presses a key: `Tab`, `Enter`, `ArrowRight`.
    pub async fn press(&mut self, key: &str) -> Result<()> {
        let codes = BTreeMap::from([("Tab", 9), ("Enter", 13), ("ArrowRight", 39), ("ArrowDown", 40)]);
        let code = codes.get(key).context("a key that no test has pressed yet")?;
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Types a text into what has the focus.
    pub async fn type_text(&mut self, text: &str) -> Result<()> {
        self.call("Input.insertText", json!({ "text": text })).await.map(drop)
    }

    /// Writes what the page looks like, all of it, to a file of the PNG format.
    pub async fn picture(&mut self, file: &Path) -> Result<()> {
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.call("Page.captureScreenshot", asked).await?;
        let picture = STANDARD.decode(picture["data"].as_str().context("no picture")?)?;
        fs::create_dir_all(file.parent().context("a file in no folder")?)?;
        fs::write(file, picture).with_context(|| file.display().to_string())
    }

    /// Returns what the page complained of since the last call.
    pub fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.commands += 1;
        let id = self.commands;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).await.context("the browser has ended")?;
        self.to.flush().await?;
        loop {
            let mut message = vec![];
            tokio::time::timeout(PATIENCE, self.from.read_until(0, &mut message))
                .await
                .with_context(|| format!("no answer to {method}"))??;
            ensure!(message.pop() == Some(0), "the browser has ended");
            let message: Value = serde_json::from_slice(&message)?;
            if message["id"] == id {
                ensure!(message["error"].is_null(), "{method}: {}", message["error"]);
                return Ok(message["result"].clone());
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let complaint = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if params["type"] != "log" => Some(params["args"].to_string()),
            "Log.entryAdded" if params["entry"]["level"] != "info" => Some(params["entry"].to_string()),
            _ => None,
        };
        self.complaints.extend(complaint);
    }
}
