//! Licences: every package in the graph must be usable under one that the house accepts.
//!
//! The expressions are SPDX, with the old `/` for OR. `deny.toml` says the same to `cargo deny`,
//! which also reads licence files; this rule holds where that tool is not installed.

use crate::metadata::Package;

/// What the house accepts. `WITH` joins a licence and its exception into one name.
pub const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// One complaint per package that no accepted licence covers.
pub fn complaints(packages: &[Package]) -> Vec<String> {
    packages.iter().filter_map(complaint).collect()
}

fn complaint(package: &Package) -> Option<String> {
    let Package { name, version, .. } = package;
    let Some(expression) = &package.licence else {
        return Some(format!("{name} {version}: its manifest names no licence"));
    };
    match accepts(expression) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} {version}: licence `{expression}` is not on the list")),
        Err(why) => Some(format!("{name} {version}: licence `{expression}`: {why}")),
    }
}

/// Whether the expression can be met with accepted licences alone.
///
/// Errors: the text is no licence expression.
pub fn accepts(expression: &str) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { left: spaced.split_whitespace().collect() };
    let accepted = words.any_of()?;
    match words.left.first() {
        None => Ok(accepted),
        Some(word) => Err(format!("`{word}` is unexpected")),
    }
}

/// The rest of an expression; AND binds closer than OR.
struct Words<'a> {
    left: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn any_of(&mut self) -> Result<bool, String> {
        let mut accepted = self.all_of()?;
        while self.skip("OR") {
            accepted |= self.all_of()?;
        }
        Ok(accepted)
    }

    fn all_of(&mut self) -> Result<bool, String> {
        let mut accepted = self.one()?;
        while self.skip("AND") {
            accepted &= self.one()?;
        }
        Ok(accepted)
    }

    fn one(&mut self) -> Result<bool, String> {
        let word = self.take()?;
        if word == "(" {
            let accepted = self.any_of()?;
            return if self.skip(")") { Ok(accepted) } else { Err("`)` is missing".to_owned()) };
        }
        if ["OR", "AND", "WITH", ")"].contains(&word) {
            return Err(format!("`{word}` stands where a licence should"));
        }
        let licence = if self.skip("WITH") {
            format!("{word} WITH {}", self.take()?)
        } else {
            word.to_owned()
        };
        Ok(ALLOWED.contains(&licence.as_str()))
    }

    fn take(&mut self) -> Result<&'a str, String> {
        if self.left.is_empty() {
            return Err("it ends too early".to_owned());
        }
        Ok(self.left.remove(0))
    }

    fn skip(&mut self, word: &str) -> bool {
        let found = self.left.first() == Some(&word);
        if found {
            self.left.remove(0);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_expressions() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR GPL-3.0-only",
            "GPL-2.0-only OR (MIT AND Unicode-3.0)",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert_eq!(accepts(good), Ok(true), "{good}");
        }
    }

    #[test]
    fn refused_expressions() {
        for bad in [
            "GPL-3.0-only",
            "MPL-2.0",
            "MIT AND GPL-3.0-only",
            "MIT AND (MPL-2.0 OR GPL-3.0-only)",
            "Apache-2.0 WITH Other-exception",
            "mit",
        ] {
            assert_eq!(accepts(bad), Ok(false), "{bad}");
        }
    }

    #[test]
    fn malformed_expressions_are_errors() {
        for malformed in ["", "MIT OR", "(MIT", "MIT)", "OR MIT", "MIT MIT", "MIT WITH"] {
            assert!(accepts(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn the_complaint_names_package_and_expression() {
        let mut package =
            Package { name: "x".into(), version: "1.2.3".into(), ..Default::default() };
        assert_eq!(complaints(&[package]), ["x 1.2.3: its manifest names no licence"]);
        package = Package {
            name: "x".into(),
            version: "1.2.3".into(),
            licence: Some("MPL-2.0".into()),
            ..Default::default()
        };
        assert_eq!(complaints(&[package]), ["x 1.2.3: licence `MPL-2.0` is not on the list"]);
    }

    #[test]
    fn cargo_deny_is_given_the_same_list() {
        let deny = include_str!("../../deny.toml");
        let listed: Vec<&str> = deny
            .lines()
            .skip_while(|line| !line.starts_with("allow = ["))
            .skip(1)
            .take_while(|line| !line.starts_with(']'))
            .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
            .collect();
        assert_eq!(listed, ALLOWED);
    }
}
