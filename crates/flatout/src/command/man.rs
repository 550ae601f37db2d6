//! `flatout man`: the manual page of the program, of a command or of an area, made of the definition
//! of the command line and of what `man/pages.txt` adds.

mod sections;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Command;
use clap_mangen::{Man, roff};

use crate::arguments::help::text::{self, Part};
use crate::arguments::help::{self, Page};
use crate::{conclusion, output};

/// Prints the page.
pub fn run(arguments: &Page) -> ExitCode {
    let command = match help::definition(&arguments.words) {
        Ok(command) => command,
        Err(error) => return output::give_up(conclusion::WRONG_USE, &error),
    };
    match page(command) {
        Ok(page) => output::deliver(None, &page, conclusion::DONE),
        Err(error) => output::give_up(conclusion::FAILED, &output::cannot("make the page")(error)),
    }
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let has_commands = command.get_subcommands().any(|command| !command.is_hide_set());
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, notes) = parted(&notes);
    let version = concat!("flatout ", env!("CARGO_PKG_VERSION"));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let page = Man::new(command);
    let mut out = Vec::new();
    // The page's own title leaves an empty date out, so that the version would be taken for it.
    let title = name.to_uppercase().replace('-', "\\-");
    writeln!(out, ".TH \"{title}\" 1 \"\" \"{version}\" flatout")?;
    page.render_name_section(&mut out)?;
    synopsis(usage).to_writer(&mut out)?;
    page.render_description_section(&mut out)?;
    let mut options = Vec::new();
    page.render_options_section(&mut options)?;
    // An empty line breaks the one before it already.
    let options = String::from_utf8_lossy(&options).replace("\n.br\n\n.br\n", "\n.sp\n");
    out.write_all(options.as_bytes())?;
    if has_commands {
        page.render_subcommands_section(&mut out)?;
    }
    section("NOTES", &notes).to_writer(&mut out)?;
    section("EXAMPLES", &examples).to_writer(&mut out)?;
    for head in ["EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO"] {
        section(head, &sections::of(&name, head)).to_writer(&mut out)?;
    }
    Ok(out)
}

/// The examples of a help text, and the rest without what the page says of its exit status. The
/// last paragraphs of several areas may have examples each.
fn parted(text: &str) -> (String, String) {
    let (mut examples, mut notes) = (Vec::new(), Vec::new());
    for paragraph in text.split("\n\n") {
        match paragraph.strip_prefix("Examples:\n") {
            Some(lines) => examples.push(lines),
            None => {
                let rest = paragraph.split("Exit codes:").next().unwrap_or(paragraph).trim_end();
                notes.extend((!rest.is_empty()).then_some(rest));
            }
        }
    }
    (examples.join("\n"), notes.join("\n\n"))
}

/// Each way to call the command, in a line of its own.
fn synopsis(usage: &str) -> roff::Roff {
    let mut synopsis = roff::Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    for (at, line) in usage.lines().enumerate() {
        if at > 0 {
            synopsis.control("br", []);
        }
        synopsis.text([roff::roman(line.trim())]);
    }
    synopsis
}

/// A section of paragraphs and terms. Nothing where there are none.
fn section(head: &str, text: &str) -> roff::Roff {
    let mut section = roff::Roff::new();
    if !text.is_empty() {
        section.control("SH", [head]);
    }
    for (at, part) in text::parts(text).into_iter().enumerate() {
        match part {
            Part::Gap => {}
            Part::Prose(words) => {
                if at > 0 {
                    section.control("PP", []);
                }
                section.text([roff::roman(words)]);
            }
            Part::Term { term, meaning, .. } if meaning.is_empty() => {
                if at > 0 {
                    section.control("PP", []);
                }
                section.text([roff::bold(term)]);
            }
            Part::Term { term, meaning, .. } => {
                section.control("TP", []);
                section.text([roff::bold(term)]);
                section.text([roff::roman(meaning)]);
            }
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    #[test]
    fn every_command_and_area_has_a_page_with_its_sections() {
        let mut program = arguments::shown_definition();
        program.build();
        let bench = program.find_subcommand("bench").unwrap();
        for command in program.get_subcommands().chain(bench.get_subcommands()) {
            let page = String::from_utf8(page(command.clone()).unwrap()).unwrap();
            let name = command.get_display_name().unwrap().to_uppercase().replace('-', "\\-");
            assert!(page.starts_with(&format!(".TH \"{name}\" 1 \"\"")), "{page}");
            for head in ["EXAMPLES", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
                assert!(page.contains(&format!(".SH {head}\n")), "{head}: {page}");
            }
            assert!(!page.contains("Exit codes"), "{page}");
        }
    }

    #[test]
    fn examples_are_told_from_notes() {
        let text = "One.\n\nExamples:\n  flatout x\n\nTwo. Exit codes: 0 done,\n1 not.";
        assert_eq!(parted(text), ("  flatout x".to_owned(), "One.\n\nTwo.".to_owned()));
    }
}
