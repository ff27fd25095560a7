//! A headless Chromium that a test controls as a user would, over the DevTools protocol on two pipes.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Maximum number of times that a condition in a page is evaluated. This takes longer than any step on a busy machine.
const LOOKS: u32 = 2_000;

/// A page in a browser.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    number: u64,
    /// Events received from the browser.
    events: VecDeque<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty profile and a window of `size`; `None` if there is no Chromium.
    pub fn start(size: (u32, u32)) -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        // It reads commands from descriptor 3 and writes responses to descriptor 4. A page that hangs ends the test
        // after two minutes.
        let mut command = Command::new("sh");
        command.args([
            "-c",
            r#"command -v chromium >/dev/null || exit 9; exec timeout 120 chromium "$@" 3<&0 4>&1 </dev/null >&2"#,
            "chromium",
        ]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
        command.args([
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ]);
        command.args(["--remote-debugging-pipe", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // It leaves a store of settings and a folder for crashes at home otherwise.
        command.env("HOME", profile.path());
        for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(variable);
        }
        command.arg("about:blank");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = piped.spawn().unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        let mut browser = Self {
            process,
            to,
            from,
            session: String::new(),
            number: 0,
            events: VecDeque::new(),
            _profile: profile,
        };
        let Some(targets) = browser.try_call("Target.getTargets", &json!({})) else {
            eprintln!("SKIPPED: there is no chromium");
            return None;
        };
        let pages = targets["targetInfos"].as_array().unwrap();
        let page = pages.iter().find(|target| target["type"] == "page").unwrap();
        let attached =
            browser.call("Target.attachToTarget", &json!({ "targetId": page["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser.resize(size);
        Some(browser)
    }

    fn try_call(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(message.to_string().as_bytes()).and_then(|()| self.to.write_all(&[0])).ok()?;
        self.to.flush().ok()?;
        loop {
            let received = self.read()?;
            if received["id"] == self.number {
                assert!(received.get("error").is_none(), "{method}: {received}");
                return Some(received["result"].clone());
            }
            self.events.push_back(received);
        }
    }

    /// The next message from the browser; `None` if it has exited.
    fn read(&mut self) -> Option<Value> {
        let mut bytes = Vec::new();
        if self.from.read_until(0, &mut bytes).ok()? == 0 {
            return None;
        }
        bytes.pop();
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|| panic!("{method}: the browser is gone"))
    }

    /// Resizes the window.
    pub fn resize(&mut self, (width, height): (u32, u32)) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Sets the preferred colour scheme of the reader's system.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// Enables or disables scripts.
    pub fn allow_scripts(&mut self, allowed: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({ "value": !allowed }));
    }

    /// Opens a file.
    pub fn open(&mut self, page: &Path) {
        let page = page.canonicalize().unwrap();
        let known = self.events.len();
        self.call("Page.navigate", &json!({ "url": format!("file://{}", page.display()) }));
        // Waits for an event, because the page cannot report its state when scripts are disabled.
        while !self.events.iter().skip(known).any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read().expect("the browser is there until its page is");
            self.events.push_back(event);
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &asked);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The text of the element that `selector` selects.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!("document.querySelector({selector:?})?.innerText ?? null"));
        text.as_str().unwrap_or_else(|| panic!("no {selector}")).to_owned()
    }

    /// Waits until an expression in the page is true. The evaluations run on the page's clock, not the test's.
    pub fn until(&mut self, expression: &str) {
        let look = format!(
            "new Promise((done) => {{ let left = {LOOKS}; const look = () => ({expression}) ? done(true) : left-- ? \
             setTimeout(look, 30) : done(false); look(); }})"
        );
        let asked = json!({ "expression": look, "awaitPromise": true, "returnByValue": true });
        let held = self.call("Runtime.evaluate", &asked);
        assert_eq!(held["result"]["value"], true, "{expression}: {held}");
    }

    /// Presses and releases a key, as a keyboard does.
    pub fn key(&mut self, key: &str) {
        // Browsers use this code for keys that do not produce text.
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => 0,
        };
        let text = if key == "Enter" {
            "\r"
        } else if key.chars().count() == 1 {
            key
        } else {
            ""
        };
        let event = json!({ "type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", &event);
        self.call(
            "Input.dispatchKeyEvent",
            &json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }),
        );
        self.settle();
    }

    /// Types text into the focused element.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
        self.settle();
    }

    /// Sends a pointer event of type `kind` at a position in an element, given as fractions of its width and height.
    pub fn pointer(&mut self, kind: &str, selector: &str, (across, down): (f64, f64), more: &Value) {
        let place = format!(
            "(() => {{ const at = document.querySelector({selector:?}); at.scrollIntoView({{ block: 'center' }}); \
             const box = at.getBoundingClientRect(); return [box.x + box.width * {across}, box.y + box.height * {down}]; }})()"
        );
        let place = self.value(&place);
        let mut event = json!({ "type": kind, "x": place[0], "y": place[1] });
        for (name, value) in more.as_object().unwrap() {
            event[name] = value.clone();
        }
        self.call("Input.dispatchMouseEvent", &event);
        self.settle();
    }

    /// Presses and releases the pointer on an element.
    pub fn click(&mut self, selector: &str, place: (f64, f64)) {
        for kind in ["mousePressed", "mouseReleased"] {
            self.pointer(kind, selector, place, &json!({ "button": "left", "buttons": 1, "clickCount": 1 }));
        }
    }

    /// Waits until all pending animation frames have been drawn.
    pub fn settle(&mut self) {
        let drawn = "new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 200))";
        let asked = json!({ "expression": drawn, "awaitPromise": true });
        self.call("Runtime.evaluate", &asked);
    }

    /// Writes a PNG screenshot of the whole page, or of the window.
    pub fn picture(&mut self, path: &Path, whole: bool) {
        self.settle();
        let shot =
            self.call("Page.captureScreenshot", &json!({ "format": "png", "captureBeyondViewport": whole }));
        let bytes = BASE64.decode(shot["data"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Error messages of scripts and of the browser so far, and all requested addresses.
    pub fn complaints(&mut self) -> (Vec<String>, Vec<String>) {
        self.value("0");
        let (mut complaints, mut asked) = (Vec::new(), Vec::new());
        for event in &self.events {
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" | "Log.entryAdded" => complaints.push(event.to_string()),
                "Runtime.consoleAPICalled" if event["params"]["type"] == "error" => {
                    complaints.push(event.to_string());
                }
                "Network.requestWillBeSent" => {
                    asked.push(event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned());
                }
                _ => {}
            }
        }
        (complaints, asked)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Kills the browser if it is still running.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
