//! The time zone of the user, found as tzset(3) finds it, which date(1) and find(1) go by: the file
//! that `TZ` names, absolute or below /usr/share/zoneinfo, or the rule that it is; without `TZ`
//! /etc/localtime. What tzset takes for UTC because it makes no sense is an error here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, io};

use flatout_io::{cause_text, quote};
use jiff::tz::TimeZone;

/// Where the files of zones lie, unless `TZDIR` says otherwise.
const ZONES: &str = "/usr/share/zoneinfo";
/// The zone of the machine.
const LOCAL: &str = "/etc/localtime";

/// The zone of this process.
///
/// Errors: there is none of that name, or its file cannot be read; a line.
///
/// Cost: a small file is read.
pub fn of_user() -> Result<TimeZone, String> {
    let zones = std::env::var_os("TZDIR").filter(|folder| !folder.is_empty());
    let zones = zones.as_deref().unwrap_or(OsStr::new(ZONES));
    found(std::env::var_os("TZ").as_deref(), Path::new(zones), Path::new(LOCAL))
}

fn found(named: Option<&OsStr>, zones: &Path, local: &Path) -> Result<TimeZone, String> {
    let Some(named) = named else {
        return Ok(of_file(local)?.unwrap_or(TimeZone::UTC));
    };
    let name = named.as_bytes();
    let name = OsStr::from_bytes(name.strip_prefix(b":").unwrap_or(name));
    if name.is_empty() {
        return Ok(TimeZone::UTC);
    }
    if let Some(zone) = of_file(&zones.join(name))? {
        return Ok(zone);
    }
    // Where no zones are installed, it is known all the same.
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    let rule = name.to_str().and_then(|rule| TimeZone::posix(rule).ok());
    rule.ok_or_else(|| {
        format!(
            "TZ={} names no time zone in {}; 2026-11-24T00:00Z is in UTC",
            quote(named),
            zones.display()
        )
    })
}

/// The zone in a file; `None` where there is no file.
fn of_file(path: &Path) -> Result<Option<TimeZone>, String> {
    let unusable = |cause: &str| format!("cannot read the time zone {}: {cause}", quote(path));
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unusable(&cause_text(&error))),
    };
    TimeZone::tzif("", &bytes).map(Some).map_err(|_| unusable("it is no file of a time zone"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    /// A zone without changes: an empty block of the first version, one of the second with one kind of
    /// time, and a rule (RFC 9636).
    fn zone_file(rule: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..2 {
            bytes.extend_from_slice(b"TZif2");
            bytes.extend_from_slice(&[0; 15]);
            for count in [0_u32, 0, 0, 0, 1, 4] {
                bytes.extend_from_slice(&count.to_be_bytes());
            }
            bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(b"ABC\0");
        }
        bytes.extend_from_slice(format!("\n{rule}\n").as_bytes());
        bytes
    }

    #[test]
    fn a_zone_is_the_one_that_date_would_take() {
        let folder = tempfile::tempdir().unwrap();
        let zones = folder.path();
        fs::create_dir(zones.join("Asia")).unwrap();
        fs::write(zones.join("Asia/Tokyo"), zone_file("JST-9")).unwrap();
        fs::write(zones.join("local"), zone_file("XYZ-2")).unwrap();
        fs::write(zones.join("text"), "no zone").unwrap();
        let local = zones.join("local");
        let hours = |named: Option<&str>| {
            let zone = found(named.map(OsStr::new), zones, &local)?;
            let at = date(2026, 11, 24).to_zoned(zone).unwrap();
            Ok::<_, String>(i64::from(at.offset().seconds()) / 3600)
        };
        let absolute = zones.join("Asia/Tokyo");
        for (named, expected) in [
            (None, 2),
            (Some(""), 0),
            (Some(":"), 0),
            (Some("UTC"), 0),
            (Some("Asia/Tokyo"), 9),
            (Some(":Asia/Tokyo"), 9),
            (absolute.to_str(), 9),
            (Some("JST-9"), 9),
            (Some("CET-1CEST,M3.5.0,M10.5.0/3"), 1),
        ] {
            assert_eq!(hours(named), Ok(expected), "{named:?}");
        }
        for named in ["bogus", "asia/tokyo", "Asia", "text"] {
            assert!(hours(Some(named)).unwrap_err().contains(named), "{named}");
        }
        let unset = found(None, zones, &zones.join("none")).unwrap();
        assert_eq!(unset, TimeZone::UTC);
    }
}
