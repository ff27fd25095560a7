//! `tacit explore`, and its page in a headless Chromium, which `./ci.sh setup` installs. Without it these tests are
//! skipped and report this. Screenshots are kept in `target/explore`.

mod browser;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

use browser::Browser;

const WIDE: (u32, u32) = (1280, 800);
const NARROW: (u32, u32) = (390, 844);
/// Long enough that the full range is drawn as shares of channel time, and with losses and collisions.
const RUN: [&str; 8] = [
    "--clients",
    "2",
    "--set",
    "run.duration=2s",
    "--set",
    "run.measure-from=500ms",
    "--set",
    "wifi.mpdu-error=4 %",
];

fn tacit() -> Command {
    let mut command = Command::cargo_bin("tacit").unwrap();
    command.env("TACIT_CACHE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/runs-of-explore"));
    command
}

/// A page with two schemes, and the program's report about it.
fn page(directory: &Path) -> (PathBuf, Value) {
    let path = directory.join("page.html");
    let output =
        tacit().args(["explore", "wlan-11n-150", "--json"]).args(RUN).arg("-o").arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (path, serde_json::from_slice(&output.stdout).unwrap())
}

fn picture(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    root.join("explore").join(format!("{name}.png"))
}

/// Checks that there are no error messages and that nothing except the page was requested.
fn nothing_went_wrong(browser: &mut Browser, page: &Path) {
    let (complaints, asked) = browser.complaints();
    assert_eq!(complaints, Vec::<String>::new());
    let page_url = format!("file://{}", page.canonicalize().unwrap().display());
    assert_eq!(asked, [page_url], "nothing but the page itself is asked for");
}

/// Duration of the range shown by a time line, according to the table below it.
fn stretch(browser: &mut Browser) -> String {
    browser.text("table tbody tr td")
}

#[test]
fn json_says_what_was_written_and_the_digest_is_that_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let (path, report) = page(directory.path());
    assert_eq!(report["bytes"], std::fs::metadata(&path).unwrap().len());
    for (scheme, name) in report["schemes"].as_array().unwrap().iter().zip(["stock", "hack-more-data"]) {
        assert_eq!(scheme["scheme"], name);
        assert!(scheme["frames"].as_u64().unwrap() > 500, "{scheme}");
        let run =
            tacit().args(["run", "wlan-11n-150", "--json", "--scheme", name]).args(RUN).output().unwrap();
        let run: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(scheme["digest"], run["digest"], "to look on changes nothing");
    }
}

/// Holds in the reorder buffer, which the page computes from frames alone, are those that the run measured.
#[test]
fn the_window_of_several_links_is_drawn_with_what_it_holds() {
    let Some(mut browser) = Browser::start(WIDE) else { return };
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let run: Vec<&str> = "wlan-11be-mlo-5-6 --clients 1 --set wifi.mpdu-error=2% --set run.measure-from=0s"
        .split(' ')
        .chain(["--set", "run.duration=200ms"])
        .collect();
    tacit().arg("explore").args(&run).args(["--schemes", "stock", "-o"]).arg(&page).assert().success();
    let measured = tacit().args(["run", "--json"]).args(&run).output().unwrap();
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap();
    browser.prefer("light");
    browser.open(&page);
    browser.until("'ready' in document.documentElement.dataset");
    browser.settle();
    browser.picture(&picture("several-links"), false);
    let words = browser.value("document.querySelector('canvas[aria-label*=\"reorder buffer\"]').ariaLabel");
    let words = words.as_str().unwrap();
    let longest_ms: f64 = words.rsplit_once(" for ").unwrap().1.split_once(" ms").unwrap().0.parse().unwrap();
    let longest_us = measured["metrics"]["reorder_delay_max_us"].as_f64().unwrap();
    assert!((longest_ms * 1e3 / longest_us - 1.0).abs() < 0.01, "{words}; measured {longest_us} us");
    nothing_went_wrong(&mut browser, &page);
}

#[test]
fn a_failed_write_is_one_line_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("page.html");
    let failed = tacit().args(["explore", "-o"]).arg(&path).assert().code(2);
    let stderr = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("missing/page.html") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_reader_finds_frames_by_keys_pointer_and_words() {
    let Some(mut browser) = Browser::start(WIDE) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (page, report) = page(directory.path());
    browser.prefer("light");
    browser.open(&page);
    browser.until("'ready' in document.documentElement.dataset");
    browser.settle();
    assert_eq!(stretch(&mut browser), "2 s", "all of the run to begin with");
    browser.picture(&picture("light-all"), false);
    // The page decodes the numbers that the program wrote.
    for (column, scheme) in report["schemes"].as_array().unwrap().iter().enumerate() {
        let cell = format!("document.querySelectorAll('table tbody tr')[1].cells[{}].innerText", column + 1);
        let shown: String =
            browser.value(&cell).as_str().unwrap().chars().filter(char::is_ascii_digit).collect();
        assert_eq!(json!(shown.parse::<u64>().unwrap()), scheme["frames"]);
    }

    // Steps from frame to frame.
    browser.key("]");
    let first = browser.text("[aria-live]");
    assert!(first.starts_with("stock, frame 1 of "), "{first}");
    browser.key("]");
    assert!(browser.text("[aria-live]").starts_with("stock, frame 2 of "));
    browser.key("[");
    assert_eq!(browser.text("[aria-live]"), first);
    browser.key("z");
    let near = stretch(&mut browser);
    assert!(near.ends_with("µs") || near.ends_with(" ms"), "{near}");

    // Search: finds as many frames as the program counted, and selects the first.
    browser.key("/");
    browser.write("kind:block-ack hack");
    let found = browser.text("output");
    assert!(found.ends_with("frames") && found.len() > 7, "{found}");
    browser.key("Enter");
    browser.settle();
    assert!(browser.text("output").starts_with("1 of "), "{}", browser.text("output"));
    let announced = browser.text("[aria-live]");
    assert!(
        announced.contains("Block Ack to ap") && announced.contains("bytes of compressed ACKs"),
        "{announced}"
    );
    assert!(announced.starts_with("hack-more-data"), "stock has none: {announced}");
    browser.key("Escape");
    browser.key("n");
    assert!(browser.text("output").starts_with("2 of "));
    browser.key("z");
    browser.settle();
    browser.picture(&picture("light-microseconds"), false);
    browser.picture(&picture("light-page"), true);

    // A query that is not understood.
    browser.key("/");
    browser.value("document.querySelector('input[type=search]').select()");
    browser.write("kind:blok");
    assert!(
        browser.text("output.error").contains("no kind blok; there are data,"),
        "{}",
        browser.text("output")
    );
    browser.value("document.querySelector('input[type=search]').select()");
    browser.write("t=0.8s");
    browser.key("Escape");
    let announced = browser.text("[aria-live]");
    assert!(
        ["at 0.79", "at 0.80"].iter().any(|time| announced.contains(time)),
        "on the air then: {announced}"
    );

    // The full range again, then zooming with the wheel over the middle, and with a box.
    browser.key("0");
    assert_eq!(stretch(&mut browser), "2 s");
    let lanes = "canvas.lanes";
    browser.pointer("mouseWheel", lanes, (0.5, 0.2), &json!({ "deltaX": 0, "deltaY": -3000 }));
    let zoomed = stretch(&mut browser);
    assert!(zoomed.ends_with("ms"), "{zoomed}");
    browser.key("0");
    let held = json!({ "button": "left", "buttons": 1, "clickCount": 1, "modifiers": 8 });
    browser.pointer("mousePressed", lanes, (0.4, 0.2), &held);
    browser.pointer("mouseMoved", lanes, (0.5, 0.2), &held);
    browser.pointer("mouseReleased", lanes, (0.5, 0.2), &held);
    let boxed = stretch(&mut browser);
    assert!(boxed.starts_with("2") && boxed.ends_with("ms"), "a tenth of the width: {boxed}");

    // Dragging moves the range. Keys do not zoom while the focus is in a text field.
    browser.key("+");
    browser.key("ArrowRight");
    // Hovering shows information about the item under the pointer.
    browser.key("n");
    browser.key("z");
    browser.pointer("mouseMoved", lanes, (0.5, 0.2), &json!({}));
    let tip = browser.text(".tip");
    assert!(tip.contains("begins") && tip.contains("rate"), "{tip}");
    browser.picture(&picture("light-tip"), false);
    // A clicked item is selected.
    browser.key("0");
    browser.click(lanes, (0.5, 0.2));
    let announced = browser.text("[aria-live]");
    assert!(
        announced.contains("ap sends data") && announced.contains("at 0.9"),
        "the middle of two seconds: {announced}"
    );
    nothing_went_wrong(&mut browser, &page);
}

#[test]
fn one_time_line_or_two_and_a_theme_of_ones_own() {
    let Some(mut browser) = Browser::start(WIDE) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (page, _) = page(directory.path());
    browser.prefer("dark");
    browser.open(&page);
    browser.until("'ready' in document.documentElement.dataset");
    let ground = "getComputedStyle(document.body).backgroundColor";
    let dark = browser.value(ground);
    browser.picture(&picture("dark-all"), false);
    let both = |browser: &mut Browser| {
        let cells = "[...document.querySelectorAll('table tbody tr')][0].innerText.split('\\t').slice(1)";
        browser.settle();
        browser.value(cells)
    };
    browser.key("+");
    assert_eq!(both(&mut browser), json!(["1.25 s", "1.25 s"]));
    browser.key("l");
    browser.key("+");
    assert_eq!(both(&mut browser), json!(["781.3 ms", "1.25 s"]), "the first alone");
    browser.key("s");
    browser.key("0");
    assert_eq!(both(&mut browser), json!(["781.3 ms", "2 s"]), "the other alone");
    browser.key("t");
    assert_ne!(browser.value(ground), dark);
    browser.key("t");
    assert_eq!(browser.value(ground), dark);
    browser.key("l");
    browser.key("/");
    browser.write("hack");
    browser.key("Enter");
    browser.key("Escape");
    browser.key("z");
    browser.picture(&picture("dark-microseconds"), false);
    browser.picture(&picture("dark-page"), true);
    // The size of a phone.
    browser.resize(NARROW);
    browser.settle();
    let wider = "document.documentElement.scrollWidth > innerWidth";
    assert_eq!(browser.value(wider), json!(false), "nothing sticks out");
    browser.picture(&picture("narrow-dark-microseconds"), false);
    browser.key("0");
    browser.prefer("light");
    browser.key("t");
    browser.picture(&picture("narrow-light-page"), true);
    nothing_went_wrong(&mut browser, &page);
}

#[test]
fn every_control_has_a_name_and_the_numbers_stand_without_scripts() {
    let Some(mut browser) = Browser::start(WIDE) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (page, _) = page(directory.path());
    browser.open(&page);
    browser.until("'ready' in document.documentElement.dataset");
    let nameless = "[...document.querySelectorAll('button,input,select,canvas')].filter((one) => \
                    !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.labels?.length)).length";
    assert_eq!(browser.value(nameless), json!(0));
    // The tab key reaches both time lines.
    let mut reached = Vec::new();
    for _ in 0..30 {
        browser.key("Tab");
        let at = browser.value("document.activeElement.getAttribute('aria-labelledby')");
        if let Some(at) = at.as_str() {
            reached.push(at.to_owned());
        }
    }
    assert!(
        ["scheme-0", "scheme-1"].iter().all(|&lanes| reached.iter().any(|at| at == lanes)),
        "{reached:?}"
    );
    nothing_went_wrong(&mut browser, &page);
    browser.allow_scripts(false);
    browser.open(&page);
    let text = browser.text("body");
    assert!(text.contains("scripts are off") && text.contains("goodput, Mb/s"), "{text}");
}
