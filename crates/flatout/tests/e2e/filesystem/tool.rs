//! Programs of the administrator.

use std::path::Path;
use std::process::Command;

/// A program, also where the search path is a user's.
pub fn tool(name: &str) -> Command {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let found =
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    Command::new(found.unwrap_or_else(|| name.into()))
}

/// What it printed, or how it failed.
pub fn succeed(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{name}: {}: {why}", output.status))
}
