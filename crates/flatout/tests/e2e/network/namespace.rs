//! Two network namespaces joined by a pair of virtual cards, with a limit to the rate: the program
//! must find the limit.

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Serving, rows, token};
use crate::bin::{Folder, executable, warnings};
use crate::filesystem::{needs_program, needs_root};
use crate::skip::needs;

/// Bits per second that the card lets through: so few that a busy machine keeps up.
const LIMIT_BITS_PER_S: f64 = 50e6;
/// Runs, of which one must be undisturbed by whatever else the machine does.
const RUNS: u32 = 12;
/// Bytes of a packet with its Ethernet header, as the limit counts them, and those that are data.
const PACKET_BYTES: f64 = 1514.0;
const DATA_BYTES: f64 = 1448.0;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The two namespaces; gone when dropped.
struct Pair {
    near: String,
    far: String,
}

fn ip(words: &str) -> Result<(), String> {
    tool("ip", words)
}

fn tool(program: &str, words: &str) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program)
        .args(words.split(' '))
        .env("PATH", path)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(format!("{program} {words}: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
    }
}

impl Pair {
    fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("network namespaces need root".to_owned());
        }
        let name =
            format!("flatout-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let pair = Self { near: format!("{name}-a"), far: format!("{name}-b") };
        ip(&format!("netns add {}", pair.near))?;
        ip(&format!("netns add {}", pair.far))?;
        ip(&format!("-n {} link add near type veth peer name far netns {}", pair.near, pair.far))?;
        for (space, card, address) in
            [(&pair.near, "near", "10.77.0.1/24"), (&pair.far, "far", "10.77.0.2/24")]
        {
            ip(&format!("-n {space} address add {address} dev {card}"))?;
            ip(&format!("-n {space} link set {card} up"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(pair)
    }

    /// Limits what leaves the near card, and the far one where `both`.
    fn limit(&self, bits_per_s: u64, both: bool) -> Result<(), String> {
        let cards = [(&self.near, "near"), (&self.far, "far")];
        cards.iter().take(if both { 2 } else { 1 }).try_for_each(|(space, card)| {
            ip(&format!(
                "netns exec {space} tc qdisc add dev {card} root handle 1: tbf rate {bits_per_s}bit \
                 burst 64kb latency 50ms"
            ))
        })
    }

    /// Has the limited cards drop packets by their number, the shortest like the longest.
    fn queue(&self, packets: u32) -> Result<(), String> {
        [(&self.near, "near"), (&self.far, "far")].iter().try_for_each(|(space, card)| {
            ip(&format!(
                "netns exec {space} tc qdisc add dev {card} parent 1:1 pfifo limit {packets}"
            ))
        })
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for space in [&self.near, &self.far] {
            let _ = ip(&format!("netns delete {space}"));
        }
    }
}

/// The program in a namespace.
fn inside<'f>(folder: &'f Folder, space: &str, words: &[&str]) -> crate::bin::Flatout<'f> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut all: Vec<OsString> = ["netns", "exec", space].map(OsString::from).to_vec();
    all.push(executable().into());
    all.extend(words.iter().map(OsString::from));
    folder.program("ip".as_ref(), all).with(|command| {
        command.env("PATH", path);
    })
}

fn serve<'f>(folder: &'f Folder, pair: &Pair, token: &str, more: &[&str]) -> Serving<'f> {
    let (reader, writer) = std::io::pipe().unwrap();
    let words = ["serve", "--bind", "10.77.0.2", "--token-file", token];
    Serving::of(inside(folder, &pair.far, &[&words, more].concat()).stdout(writer).start(), reader)
}

#[test]
fn a_limit_to_the_rate_is_found() {
    let pair = needs!(Pair::new());
    needs!(pair.limit(LIMIT_BITS_PER_S as u64, false));
    let folder = Folder::new();
    let token = token(&folder, "a token that both ends know");
    let token = token.to_str().unwrap();
    let server = serve(&folder, &pair, token, &[]);
    let words = [
        "bench",
        "network",
        "--connect",
        "10.77.0.2:7878",
        "--token-file",
        token,
        "--protocol",
        "tcp",
        "--streams",
        "1",
        "--direction",
        "up",
        "--sender",
        "write",
        "--duration",
        "400ms",
        "--quick",
        "--rounds",
        "3",
        "--format",
        "json",
    ];
    let expected = LIMIT_BITS_PER_S / 8.0 * DATA_BYTES / PACKET_BYTES;
    let row = (0..RUNS)
        .map(|_| {
            let document = inside(&folder, &pair.near, &words).run().exits(0).document();
            let row = rows(&document)[0].clone();
            (row["median"].as_f64().unwrap() / expected, row)
        })
        .find(|(ratio, _)| (0.97..=1.03).contains(ratio))
        .expect("a run finds the limit")
        .1;
    let audit = &row["audit"];
    assert!(audit["segments"].as_u64().unwrap() > 300, "{row:#}");
    assert_eq!(row["ceiling"]["provenance"], "unknown", "a virtual card has no speed: {row:#}");
    let series: Vec<&str> =
        row["series"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    for name in ["rate", "round trip, stream 0", "congestion window, stream 0"] {
        assert!(series.contains(&name), "{series:?}");
    }
    drop(server);
}

#[test]
fn clients_that_share_a_limited_link_have_its_rate_as_their_sum() {
    let pair = needs!(Pair::new());
    needs!(pair.limit(LIMIT_BITS_PER_S as u64, false));
    let folder = Folder::new();
    let token = token(&folder, "a token that both ends know");
    let token = token.to_str().unwrap();
    let server = serve(&folder, &pair, token, &["--together", "3"]);
    let connect = ["bench", "network", "--connect", "10.77.0.2:7878", "--token-file", token];
    let one = ["--measure", "throughput", "--protocol", "tcp", "--direction", "up"];
    let rest = ["--streams", "1", "--duration", "1s", "--rounds", "3", "--format", "json"];
    let words = [&connect[..], &one, &rest].concat();
    let expected = LIMIT_BITS_PER_S / 8.0 * DATA_BYTES / PACKET_BYTES;
    let is_found = || {
        let clients = [(); 3].map(|()| inside(&folder, &pair.near, &words).start());
        let sums = clients.map(|client| {
            let document = client.wait().exits(0).document();
            let [own, sum] = &rows(&document)[..] else { panic!("{document:#}") };
            assert!(warnings(own).contains(&"shared_server"), "{own:#}");
            sum["median"].as_f64().unwrap() / expected
        });
        sums.iter().all(|ratio| (0.97..=1.03).contains(ratio))
    };
    assert!((0..RUNS).any(|_| is_found()), "a run finds the limit");
    drop(server);
}

/// The only row of a run over the pair with these words, which need `--connect` and the token.
fn only_row(folder: &Folder, pair: &Pair, words: &[&str]) -> serde_json::Value {
    let token = token(folder, "a token that both ends know");
    let token = token.to_str().unwrap();
    let server = serve(folder, pair, token, &[]);
    let connect = ["bench", "network", "--connect", "10.77.0.2:7878", "--token-file", token];
    let rest = ["--measure", "throughput", "--max-time", "20s", "--format", "json"];
    let all = [&connect[..], words, &rest[..]].concat();
    let document = inside(folder, &pair.near, &all).run().exits(0).document();
    drop(server);
    rows(&document)[0].clone()
}

#[test]
fn a_window_is_so_long_that_single_datagrams_do_not_show() {
    let pair = needs!(Pair::new());
    needs!(pair.limit(LIMIT_BITS_PER_S as u64, false));
    // In 60 ms come five or six datagrams of 65,507 bytes.
    let words = ["--protocol", "udp", "--rate", "6MB", "--rounds", "3", "--streams", "1"];
    let row = only_row(&Folder::new(), &pair, &words);
    let came = row["audit"]["datagrams_unique"].as_f64().unwrap() / row["n"].as_f64().unwrap();
    assert!(came >= 30.0 || warnings(&row).contains(&"time_short"), "{came} a trial: {row:#}");
}

#[test]
fn datagrams_that_fill_the_queues_do_not_keep_the_ends_from_hearing_each_other() {
    let pair = needs!(Pair::new());
    needs!(pair.limit(1_000_000, true));
    needs!(pair.queue(5));
    let words = ["--protocol", "udp", "--direction", "both", "--streams", "4", "--rounds", "6"];
    let short = [&words[..], &["--datagram-size", "1460", "--time", "100ms"]].concat();
    let row = only_row(&Folder::new(), &pair, &short);
    // In each trial both ways let the burst of the limit through, 64 KiB: as a rate 1.3 MB/s, where the last
    // trial is some time ago. Without the limit it is a thousand times as much.
    assert!(row["median"].as_f64().is_some_and(|median| median < 5e6), "{row:#}");
}

#[test]
fn across_namespaces_everything_works_as_on_loopback() {
    let pair = needs!(Pair::new());
    // Less than datagrams of 1460 bytes and their headers need.
    ip(&format!("-n {} link set near mtu 1400", pair.near)).unwrap();
    ip(&format!("-n {} link set far mtu 1400", pair.far)).unwrap();
    let folder = Folder::new();
    let token = token(&folder, "a token that both ends know");
    let token = token.to_str().unwrap();
    let server = serve(&folder, &pair, token, &[]);
    let words = [
        "bench",
        "network",
        "--connect",
        "10.77.0.2:7878",
        "--token-file",
        token,
        "--quick",
        "--rounds",
        "2",
        "--format",
        "json",
    ];
    let document = inside(&folder, &pair.near, &words).run().exits(0).document();
    assert!(rows(&document).len() >= 8);
    for row in rows(&document) {
        assert!(row["median"].as_f64().is_some_and(|median| median > 0.0), "{row:#}");
    }
    let words = ["bench", "network", "--connect", "10.77.0.99:7878", "--quick"];
    let ran = inside(&folder, &pair.near, &words).run();
    assert!(ran.exits(1).stderr.contains("cannot connect to 10.77.0.99"), "{ran}");
    drop(server);
}

#[test]
fn an_address_that_several_links_bear_is_that_of_the_link_that_was_named() {
    let pair = needs!(Pair::new());
    let Pair { near, far } = &pair;
    needs!(ip(&format!("-n {near} link add second type veth peer name other netns {far}")));
    let addresses = [
        (near, "near", "fe80::77/64"),
        (near, "second", "fe80::77/64"),
        (far, "other", "fe80::78/64"),
    ];
    for (space, card, address) in addresses {
        needs!(ip(&format!("-n {space} address add {address} dev {card} nodad")));
        ip(&format!("-n {space} link set {card} up")).unwrap();
    }
    let folder = Folder::new();
    let token = token(&folder, "a token that both ends know");
    let known = ["--token-file", token.to_str().unwrap()];
    let (reader, writer) = std::io::pipe().unwrap();
    let words = [&["serve", "--bind", "fe80::78%other"][..], &known].concat();
    let server = Serving::of(inside(&folder, far, &words).stdout(writer).start(), reader);
    let words = ["bench", "network", "--connect", "fe80::78%second", "--protocol", "tcp,udp"];
    let rest = ["--measure", "throughput", "-P", "1", "--runs", "1", "--format", "json"];
    let words = [&words[..], &known, &rest].concat();
    let document = inside(&folder, near, &words).run().exits(0).document();
    for row in rows(&document) {
        let bound = row["ceiling"]["name"].as_str().unwrap();
        assert!(bound.contains("second tells no speed"), "{row:#}");
    }
    drop(server);
}

#[test]
fn without_ipv6_its_rows_say_so() {
    let pair = needs!(Pair::new());
    let folder = Folder::new();
    needs!(ip(&format!("netns exec {} sysctl -qw net.ipv6.conf.all.disable_ipv6=1", pair.near)));
    let words = ["bench", "network", "--rounds", "1", "--duration", "5ms", "--format", "json"];
    let document = inside(&folder, &pair.near, &words).run().exits(0).document();
    let of_ipv6: Vec<_> =
        rows(&document).iter().filter(|row| row["parameters"]["family"] == "ipv6").collect();
    assert!(of_ipv6.len() >= 2);
    for row in of_ipv6 {
        assert_eq!(row["status"], "unsupported", "{row:#}");
    }
}

#[test]
fn a_loopback_that_nobody_brought_up_or_somebody_took_down_is_named() {
    needs!(needs_root("makes a network namespace"));
    needs!(needs_program("unshare"));
    needs!(needs_program("ip"));
    let folder = Folder::new();
    for before in ["true", "ip link set lo up && ip link set lo down"] {
        let script = format!("{before} && exec \"$@\"");
        let under = ["unshare", "--net", "sh", "-c", &script, "sh"];
        let ran = folder.under(&under, &["bench", "network", "--runs", "1"]).run();
        assert!(ran.exits(1).stderr.contains("the loopback interface (lo) is down"), "{ran}");
    }
}
