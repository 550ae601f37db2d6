//! `flatout man`: the manual page of the program or of a command, made of the definition of the
//! command line.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Command;
use clap_mangen::{Man as Page, roff};

use crate::arguments::man::Man;
use crate::{arguments, conclusion, output};

/// Prints the page.
pub fn run(arguments: &Man) -> ExitCode {
    let mut program = arguments::shown_definition();
    program.build();
    let page = match &arguments.command {
        None => page(program.clone()),
        Some(name) => match program.find_subcommand(name) {
            Some(command) => page(command.clone()),
            None => {
                let known: Vec<_> = program.get_subcommands().map(Command::get_name).collect();
                let known = known.join(", ");
                output::complain(&format!("there is no command {name:?}; known are {known}"));
                return output::exit(conclusion::WRONG_USE);
            }
        },
    };
    match page {
        Ok(page) => output::print(&page, conclusion::DONE),
        Err(error) => {
            output::complain(&format!("cannot make the page: {error}"));
            output::exit(conclusion::FAILED)
        }
    }
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let has_commands = command.get_subcommands().any(|command| !command.is_hide_set());
    let notes = command.get_after_help().map(ToString::to_string);
    let version = concat!("flatout ", env!("CARGO_PKG_VERSION"));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let page = Page::new(command);
    let mut out = Vec::new();
    // The page's own title leaves an empty date out, so that the version would be taken for it.
    let title = name.to_uppercase().replace('-', "\\-");
    writeln!(out, ".TH \"{title}\" 1 \"\" \"{version}\" flatout")?;
    page.render_name_section(&mut out)?;
    as_written("SYNOPSIS", usage).to_writer(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if has_commands {
        page.render_subcommands_section(&mut out)?;
    }
    if let Some(notes) = notes {
        as_written("NOTES", &notes).to_writer(&mut out)?;
    }
    as_written("SEE ALSO", see_also(&name)).to_writer(&mut out)?;
    Ok(out)
}

fn see_also(name: &str) -> &'static str {
    match name {
        "flatout" => "The pages of the commands: flatout man COMMAND",
        _ => "flatout(1)",
    }
}

/// A section whose lines stay as they are: tables and examples are aligned by spaces.
fn as_written(head: &str, text: &str) -> roff::Roff {
    let mut section = roff::Roff::new();
    section.control("SH", [head]);
    section.control("nf", []);
    for line in text.lines() {
        section.text([roff::roman(line)]);
    }
    section.control("fi", []);
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_examples_in_lines() {
        let mut program = arguments::shown_definition();
        program.build();
        for command in program.get_subcommands() {
            let page = String::from_utf8(page(command.clone()).unwrap()).unwrap();
            let head = format!("FLATOUT\\-{}", command.get_name().to_uppercase());
            assert!(page.starts_with(&format!(".TH \"{head}\" 1 \"\"")), "{page}");
            assert!(page.contains(".nf\n"), "{page}");
        }
    }
}
