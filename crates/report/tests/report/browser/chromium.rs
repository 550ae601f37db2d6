//! A headless Chromium, spoken to over a pipe in the DevTools protocol: JSON, ended by a zero byte.
//!
//! Only what the tests of the page need. Each answer has a deadline; the browser ends when its pipe
//! is closed, so none is left over.
//!
//! Source: <https://chromedevtools.github.io/devtools-protocol/>.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Where Debian's package puts it.
const PROGRAM: &str = "/usr/bin/chromium";
/// No answer takes so long, on a machine that is busy with other tests either.
const PATIENCE: Duration = Duration::from_secs(120);

/// The browser with one tab.
pub struct Browser {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<Value>,
    session: String,
    next_id: u64,
    /// What happened since the page was opened.
    pub events: Vec<Value>,
    profile: TempDir,
}

impl Browser {
    /// Starts it; a reason where there is none.
    pub fn start() -> Result<Self, String> {
        if !Path::new(PROGRAM).exists() {
            return Err(format!("{PROGRAM} is not installed (package chromium)"));
        }
        let profile = TempDir::new().map_err(|error| error.to_string())?;
        // The protocol wants descriptors 3 and 4; a shell puts the pipes there. Its sandbox does
        // not work as root, and all that is opened here are files of these tests.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script, PROGRAM, "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--remote-debugging-pipe", "--no-first-run", "--disable-extensions"])
            .args(["--disable-background-networking", "--disable-dev-shm-usage", "--mute-audio"])
            .args(["--disable-component-update", "--force-device-scale-factor=1"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {PROGRAM}: {error}"))?;
        let requests = child.stdin.take().expect("was asked for");
        let pipe = BufReader::new(child.stdout.take().expect("was asked for"));
        let (sender, answers) = channel();
        thread::spawn(move || {
            for message in pipe.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the browser writes JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, events) = (String::new(), Vec::new());
        let mut browser = Self { child, requests, answers, session, next_id: 0, events, profile };
        browser.open_tab();
        Ok(browser)
    }

    fn open_tab(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let wanted = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", wanted);
        self.session = attached["sessionId"].as_str().expect("a session has a name").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    }

    /// Asks for something and waits for the answer. Panics where the browser refuses.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut request = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            request["sessionId"] = self.session.clone().into();
        }
        let text = serde_json::to_string(&request).expect("JSON is written as JSON");
        self.requests.write_all(text.as_bytes()).expect("the browser reads");
        self.requests.write_all(&[0]).expect("the browser reads");
        loop {
            let answer = self.next_message(method);
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn next_message(&mut self, waiting_for: &str) -> Value {
        let message = self.answers.recv_timeout(PATIENCE);
        message.unwrap_or_else(|error| panic!("no answer to {waiting_for}: {error}"))
    }

    /// Writes a page to a file, opens it and waits until it is loaded. Returns its address.
    pub fn open(&mut self, name: &str, html: &str) -> String {
        let path = self.profile.path().join(format!("{name}.html"));
        std::fs::write(&path, html).expect("there is room for a page");
        let url = format!("file://{}", path.display());
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}));
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            assert!(Instant::now() < deadline, "{url} is not loaded");
            let event = self.next_message("Page.navigate");
            self.events.push(event);
        }
        url
    }

    /// The value of an expression, which may be a promise.
    pub fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Scrolls an element into view and returns the middle of what is seen of it.
    fn middle(&mut self, element: &str) -> (f64, f64) {
        let found = self.value(&format!(
            "(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ));
        (found[0].as_f64().expect("a number"), found[1].as_f64().expect("a number"))
    }

    /// Moves the pointer onto an element.
    pub fn hover(&mut self, element: &str) {
        let (x, y) = self.middle(element);
        self.call("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y}));
    }

    /// Clicks on an element.
    pub fn click(&mut self, element: &str) {
        let (x, y) = self.middle(element);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// The width of the window, in the page's own pixels.
    pub fn set_width(&mut self, width: u32) {
        let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// `screen` or `print`, and the colours that the reader prefers.
    pub fn set_media(&mut self, media: &str, colours: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": colours}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": media, "features": features}));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What is wrong with it was told by the tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
